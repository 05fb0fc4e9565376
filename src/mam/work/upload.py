"""Copies what attempts leave behind into the store, so that other hosts can read it (mam.stores.outputs).

One thread of a worker reads the output logs of its running attempts and sends what is new. The log is the truth: after
an outage of the store, an upload continues where it was. Known secrets are masked.
"""

from __future__ import annotations

import time
from threading import Event, Lock, Thread

from mam.artifacts import BadArtifact, artifact_content
from mam.errors import ClaimLost, MamError, UnknownJob
from mam.stores.outputs import ARTIFACT, DIFF, PIECE_LIMIT, AttemptId, OutputLimits, Piece
from mam.util.frozen import Frozen
from mam.work.masking import Mask
from mam.work.output_log import length, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mam.config.settings import Values
    from mam.jobs.record import Job, Json
    from mam.stores.outputs import Outputs
    from mam.stores.port import Store

SEND_SECONDS, EXPIRE_SECONDS = 1.0, 3600.0
NOTHING, CONVERSATION, EVERYTHING = "none", "conversation", "all"
KEEP_DAYS = 14.0
_MIB = 1 << 20


class OutputSettings(Frozen):
    """The table `[output]` of the settings."""

    upload: str = EVERYTHING
    limits: OutputLimits = OutputLimits()
    keep_days: float = KEEP_DAYS


def output_settings(table: Values) -> OutputSettings:
    limit = round(table["limit_mib"] * _MIB) if "limit_mib" in table else OutputLimits().head
    return OutputSettings(
        upload=table.get("upload", EVERYTHING),
        limits=OutputLimits(head=limit, tail=limit, file=limit),
        keep_days=table.get("keep_days", KEEP_DAYS),
    )


class Uploader:
    """The uploads of one worker."""

    def __init__(self, store: Store, settings: OutputSettings, secrets: Iterable[str]) -> None:
        self._store = store
        self._settings = settings
        self._mask = Mask(secrets)
        self._lock = Lock()
        self._running: list[Upload] = []
        self._thread: Thread | None = None
        self._has_work = Event()
        self._is_closed = Event()

    def upload(self, job: Job, *, is_conversation: bool) -> Upload:
        """The upload of one attempt, which may be one that sends nothing."""
        upload = self._settings.upload
        sends_output = upload == EVERYTHING or (upload == CONVERSATION and is_conversation)
        return Upload(
            self._store.outputs,
            job,
            self._settings.limits,
            self._mask,
            sends_output=sends_output,
            sends_files=upload == EVERYTHING,
        )

    def follow(self, upload: Upload) -> None:
        """Sends the output of this attempt as it comes, from now until `forget`."""
        with self._lock:
            self._running.append(upload)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="mam-upload", daemon=True)
                self._thread.start()
        self._has_work.set()

    def forget(self, upload: Upload) -> None:
        with self._lock:
            if upload in self._running:
                self._running.remove(upload)
            if not self._running:
                self._has_work.clear()

    def close(self) -> None:
        self._is_closed.set()
        self._has_work.set()

    def _run(self) -> None:
        expires_at = 0.0
        while not self._is_closed.wait(SEND_SECONDS):
            self._has_work.wait()
            for upload in list(self._running):
                _unless_unreachable(upload.send)
            if time.monotonic() >= expires_at:
                expires_at = time.monotonic() + EXPIRE_SECONDS
                _unless_unreachable(self._expire)

    def _expire(self) -> None:
        expire(self._store, self._settings)


def _unless_unreachable(do: Callable[[], None]) -> None:
    """The next round does it, or the end of the attempt."""
    try:
        do()
    except (MamError, OSError):
        return


def expire(store: Store, settings: OutputSettings) -> int:
    """Removes from the store what attempts left longer ago than the settings allow. Returns how much it was."""
    return store.outputs.expire(store.clock.now().wall_ms - round(settings.keep_days * 86_400_000))


class Upload:
    """What one attempt leaves behind."""

    def __init__(
        self, outputs: Outputs, job: Job, limits: OutputLimits, mask: Mask, *, sends_output: bool, sends_files: bool
    ) -> None:
        self._outputs = outputs
        self._attempt = AttemptId(job_id=job.job_id, attempt=job.attempt, claim_id=job.claim_id)
        self._limits = limits
        self._mask = mask
        self._sends_output, self._sends_files = sends_output, sends_files
        self._log: str | None = None
        self._sent = 0
        self._lock = Lock()

    def begin(self, log: str) -> None:
        self._log = log

    def send(self, *, is_all: bool = False) -> None:
        """Sends what is new; `is_all`: nothing more comes."""
        if self._log is None or not self._sends_output:
            return
        with self._lock:
            try:
                while self._send_until_skip(self._log, is_all=is_all):
                    pass
            except (ClaimLost, UnknownJob):
                self._sends_output = self._sends_files = False  # a newer attempt has the job

    def _send_until_skip(self, log: str, *, is_all: bool) -> bool:
        """Returns whether it stopped because the next bytes can be skipped."""
        for piece in self._new_pieces(log, self._skipped_to(log), is_all=is_all):
            self._outputs.append(self._attempt, piece, self._limits)
            self._sent = piece.end
            if self._skipped_to(log) > self._sent:
                return True
        return False

    def _new_pieces(self, log: str, since: int, *, is_all: bool) -> Iterator[Piece]:
        position = max(self._sent, since - self._mask.longest)  # a secret at the start is recognised whole
        rest = b""
        for start, data in pieces(log, position):
            if start != position + len(rest):
                rest, position = b"", start
            masked = self._mask.apply(rest + data)
            safe = self._mask.safe_length(masked)
            yield from _cut(position, masked[:safe], since)
            rest, position = masked[safe:], position + safe
        if is_all and rest:
            yield from _cut(position, rest, since)

    def _skipped_to(self, log: str) -> int:
        """Where to continue: what the store would drop at once is not sent."""
        end = length(log) - self._limits.tail
        return max(self._sent, end) if self._sent >= self._limits.head else self._sent

    @property
    def file_limit(self) -> int:
        """The size of the largest file that is stored; 0 if none is."""
        return self._limits.file if self._sends_files else 0

    def put_diff(self, diff: bytes) -> None:
        if self._sends_files:
            self._put(DIFF, "", self._mask.apply(diff))

    def put_artifacts(self, found: Iterable[Json], workdir: str) -> None:
        """The artifacts that the worker has just checked. One that changed since, that is too large or that contains a
        known secret is not stored."""
        for artifact in found if self._sends_files else ():
            if artifact["size"] > self._limits.file:
                continue
            try:
                data = artifact_content(workdir, artifact["path"].removeprefix(f"{workdir}/"), self._limits.file)
            except BadArtifact:
                continue
            if not self._mask.finds(data):
                self._put(ARTIFACT, artifact["path"], data)

    def _put(self, kind: str, path: str, data: bytes) -> None:
        try:
            self._outputs.put(self._attempt, kind, path, data, self._limits)
        except (ClaimLost, UnknownJob):
            self._sends_output = self._sends_files = False


def _cut(start: int, data: bytes, since: int) -> Iterator[Piece]:
    skip = max(0, since - start)
    for offset in range(skip, len(data), PIECE_LIMIT):
        yield Piece(start=start + offset, data=data[offset : offset + PIECE_LIMIT])
