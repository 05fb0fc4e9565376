"""The mirror `<jobs_root>/<job_id>/{job.json,state}`: the state of dropped files in the format of the older queue.

The mirror is a copy and never authoritative: mam writes it after the registry, and rewrites missing, torn or outdated
files on start. `job.json` is written first and takes precedence. Other programs see only transitions that the older
queue allows, so mam writes each intermediate state of a job that moved several steps.
"""

from __future__ import annotations

import contextlib
import os

from mam.inbox.names import INBOX, RUNNING, path_with_state
from mam.inbox.tree import replace, write_new
from mam.jobs.status import Status
from mam.stores.private_files import make_directories
from mam.util.clock import parse_time
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen
from mam.util.strict_json import safe_json
from mam.work.job_dir import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.inbox.ledger import LedgerRow
    from mam.jobs.record import Job, Json

QUEUED, RUNS, SUCCEEDED, RETRYABLE, FINAL = "queued", "running", "succeeded", "failed_retryable", "failed_final"
TRANSITIONS = {
    QUEUED: (RUNS, FINAL),
    RUNS: (SUCCEEDED, RETRYABLE, FINAL),
    RETRYABLE: (QUEUED, FINAL),
    SUCCEEDED: (),
    FINAL: (),
}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SIZE_LIMIT = 1 << 20
_TEXTS = ("job_id", "git_owner", "repo_name", "branch_name", "inbox_file", "inbox_rel", "state", "created_at",
          "updated_at")  # fmt: skip
_OPTIONAL = ("processed_path", "failure_reason", "archived_path")


class OutcomePaths(Frozen):
    """The paths of an ended job's files."""

    processed: str | None = None
    archived: str | None = None


class Mirror:
    def __init__(self, jobs_root: str, root: str) -> None:
        self._jobs_root = jobs_root
        self._inbox = os.path.join(root, INBOX)

    def make(self) -> None:
        make_directories(self._jobs_root)

    def write(self, job: Job, row: LedgerRow, paths: OutcomePaths | None = None, *, new: bool = False) -> None:
        """Bring the mirror to the registry's state, one allowed transition at a time. Unchanged files are not
        rewritten. `new` means that the job cannot be in the mirror yet."""
        found = None if new else self.read(job.job_id)
        wanted = _record(job, row, self._inbox, found, paths)
        if found is not None and found == wanted and self._state(job.job_id) == wanted["state"]:
            return
        if found is None and wanted["state"] == QUEUED and self._write_new(job.job_id, wanted):
            return
        with _Folder(self._jobs_root, job.job_id) as folder:
            for state in transition_path(found["state"] if found else None, wanted["state"])[:-1]:
                retries = wanted["retries"] - (1 if state == RETRYABLE and wanted["state"] != RETRYABLE else 0)
                kept = {name: value for name, value in wanted.items() if name not in _OPTIONAL}
                folder.write({**kept, "state": state, "retries": max(0, retries)})
            folder.write(wanted)

    def _write_new(self, job_id: str, record: Json) -> bool:
        """Create the whole directory at once; False if it already exists."""
        half = os.path.join(self._jobs_root, f".mam-{job_id}")
        try:
            os.mkdir(half, 0o700)
            folder = os.open(half, _FOLDER)
            try:
                write_new(folder, "job.json", (to_bytes(record) + b"\n",), durable=False)
                write_new(folder, "state", (record["state"].encode() + b"\n",), durable=False)
            finally:
                os.close(folder)
            os.rename(half, os.path.join(self._jobs_root, job_id))
        except OSError:  # left by a killed process, or it exists: the caller's other path repairs that
            remove_tree(half)
            return False
        return True

    def read(self, job_id: str) -> Json | None:
        """The record in `job.json`; None if it is missing or invalid."""
        try:
            with open(os.path.join(self._jobs_root, job_id, "job.json"), "rb") as file:
                record = safe_json(file.read(_SIZE_LIMIT))
        except (OSError, ValueError):
            return None
        return record if schema_problem(record, job_id) is None else None

    def open_job(self, rel: str) -> str | None:
        """The id that the older queue gave to a claimed file whose job has not ended."""
        running = os.path.join(self._inbox, path_with_state(rel, RUNNING))
        found: list[tuple[str, str]] = []
        with contextlib.suppress(FileNotFoundError):
            for job_id in os.listdir(self._jobs_root):
                record = self.read(job_id)
                if record is not None and TRANSITIONS[record["state"]] and record["inbox_file"] == running:
                    found.append((record["created_at"], job_id))
        return max(found)[1] if found else None

    def consistent_state(self, job_id: str) -> str | None:
        """The state in both files; None if they differ or are invalid."""
        record = self.read(job_id)
        return record["state"] if record is not None and self._state(job_id) == record["state"] else None

    def is_final(self, job_id: str) -> bool:
        """Whether the mirrored state is final and will not change again."""
        state = self.consistent_state(job_id)
        return state is not None and not TRANSITIONS[state]

    def _state(self, job_id: str) -> str | None:
        try:
            with open(os.path.join(self._jobs_root, job_id, "state"), encoding="utf-8") as file:
                return file.read(100).strip()
        except (OSError, ValueError):
            return None


class _Folder:
    def __init__(self, jobs_root: str, job_id: str) -> None:
        path = os.path.join(jobs_root, job_id)
        try:
            self._folder = os.open(path, _FOLDER)
        except FileNotFoundError:
            os.mkdir(path, 0o700)
            self._folder = os.open(path, _FOLDER)

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._folder)

    def write(self, record: Json) -> None:
        """Not synced: after a power cut mam restores it from the registry."""
        replace(self._folder, "job.json", to_bytes(record) + b"\n", durable=False)
        replace(self._folder, "state", record["state"].encode() + b"\n", durable=False)


def mirror_state(job: Job) -> str:
    match job.status:
        case Status.RUNNING:
            return RUNS
        case Status.COMPLETED:
            return SUCCEEDED
        case Status.ERROR | Status.CANCELLED:
            return FINAL
        case Status.WAITING if job.waiting_for == "retry":
            return RETRYABLE
    return QUEUED


def transition_path(before: str | None, after: str) -> list[str]:
    """The states to write in order, ending with `after`: the shortest sequence of allowed transitions."""
    if before == after:
        return [after]
    ways = [[QUEUED]] if before is None else [[before, to] for to in TRANSITIONS[before]]
    while ways:
        way = ways.pop(0)
        if way[-1] == after:
            return way if before is None else way[1:]
        ways += [[*way, to] for to in TRANSITIONS[way[-1]] if to not in way]
    return [after]  # the mirror was damaged and is corrected


def schema_problem(record: object, job_id: str | None = None) -> str | None:
    """What is wrong with a `job.json`; None if it matches the schema."""
    if not isinstance(record, dict):
        return "not a JSON object"
    for name in _TEXTS:
        if not isinstance(record.get(name), str) or not record[name]:
            return f"{name} is missing or not a string"
    identifier = record["job_id"]
    if len(identifier) != 32 or not set(identifier) <= set("0123456789abcdef"):
        return "job_id is not 32 hex digits"
    if job_id is not None and identifier != job_id:
        return "job_id differs from its directory's name"
    if record["state"] not in TRANSITIONS:
        return f"state {record['state'][:40]!a} is not a state"
    if type(record.get("retries")) is not int or record["retries"] < 0:
        return "retries is not a count"
    if not isinstance(record.get("metadata"), dict):
        return "metadata is not an object"
    if not all(_is_second(record[name]) for name in ("created_at", "updated_at")):
        return "a time is not YYYY-MM-DDTHH:MM:SSZ"
    if record["created_at"] > record["updated_at"]:
        return "updated_at is before created_at"
    if any(not isinstance(record.get(name), str | None) for name in _OPTIONAL):
        return "a path or reason is not a string"
    return None


def _is_second(text: str) -> bool:
    shape = "".join("0" if letter.isascii() and letter.isdigit() else letter for letter in text)
    if shape != "0000-00-00T00:00:00Z":
        return False
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _record(job: Job, row: LedgerRow, inbox: str, found: Json | None, paths: OutcomePaths | None) -> Json:
    running, state = path_with_state(row.rel, RUNNING), mirror_state(job)
    record: Json = {
        "job_id": job.job_id,
        "git_owner": row.owner,
        "repo_name": row.repo,
        "branch_name": row.branch,
        "inbox_file": os.path.join(inbox, running),
        "inbox_rel": row.rel,
        "state": state,
        "retries": _retries(job, state, found),
        "created_at": min(found["created_at"], job.created_at) if found else job.created_at,
        "updated_at": job.updated_at,
        "metadata": _metadata(job, found),
    }
    paths = paths or OutcomePaths()
    if state == SUCCEEDED:
        record["processed_path"] = paths.processed or (found or {}).get("processed_path")
    if state == FINAL:
        record["failure_reason"] = job.reason or str(job.status)
        record["archived_path"] = paths.archived or (found or {}).get("archived_path")
    return record


def _retries(job: Job, state: str, found: Json | None) -> int:
    """How often the job returned to the queue: each claim but the last did, and the last too if the job is queued."""
    before = job.attempt if state == QUEUED else max(0, job.attempt - 1)
    # The count never falls, also not below that of the older queue.
    return before if found is None else max(before, found["retries"])


def _metadata(job: Job, found: Json | None) -> Json:
    metadata: Json = {"reason": "new_prompt", **((found or {}).get("metadata") or {})}
    if job.attempt:
        metadata["last_reason"] = "executor"
    if job.status is Status.WAITING and job.reason:
        metadata["last_failure"] = job.reason
    if job.retries or job.losses:
        known = metadata.get("last_retry")
        if not isinstance(known, str) or _retries(job, mirror_state(job), None) > (found or {}).get("retries", 0):
            metadata["last_retry"] = job.updated_at
    if job.status is Status.COMPLETED:
        metadata.pop("last_failure", None)
    elif job.status.ended:
        metadata["last_failure"] = job.reason or str(job.status)
    return metadata
