"""Checks an agent's work: first the expected artifacts, then the user's validation script.

mam runs the script by its content, not by its path: it reads the file once, compares the hash with the one stored when
the user trusted the script, and runs a private copy of these bytes. An agent that can write to the script's path can
therefore prevent a job from being accepted, but never get one accepted.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time

from mam.artifacts import BadArtifact, artifact_digest
from mam.errors import BadInput
from mam.machine.environment import script_environment
from mam.util.safe_read import read_regular
from mam.work.job_dir import remove_tree, write_private
from mam.work.output_log import MORE, length, read
from mam.work.process.messages import Ended, Failed
from mam.work.process.runner import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from mam.jobs.record import Job, Json
    from mam.work.process.messages import LastMessage
    from mam.work.process.runner import GuardianClient, Run

    class Watcher(Protocol):
        """The attempt's `Supervision`."""

        def keep_alive_seconds(self) -> float: ...

        def attach(self, run: Run) -> None: ...


DEFAULT_SECONDS = 300
SCRIPT_LIMIT = 8 << 20
OUTPUT_LIMIT = 64 << 10
_LOG_LIMIT = 1 << 20
_GRACE_SECONDS = 2.0
_BUSY_TRIES = 10


def trusted_validation(path: str, timeout_sec: int | None = None) -> Json:
    """The `validation` of a job's record. A user who names a script trusts its content as it is now."""
    path = os.path.abspath(path)
    try:
        digest = hashlib.sha256(_content(path)).hexdigest()
    except BadArtifact as unfit:
        raise BadInput(why=f"the validation script {path} {unfit}") from None
    limit = {} if timeout_sec is None else {"timeout_sec": timeout_sec}
    return {"script": path, "sha256": digest, **limit}


def check(
    job: Job,
    workdir: str,
    guardian: GuardianClient,
    private: str,
    mark: str,
    *,
    environ: Mapping[str, str] | None = None,
    watcher: Watcher | None = None,
) -> Json:
    """The `checks` of a job's record; `problem` is None if everything is as expected.

    `private` is the prefix of the attempt's own files, outside of the agent's workspace; `mark` is the store's.
    `watcher` keeps the run of the script alive and can stop it.
    """
    checks: Json = {"artifacts": [], "script": None, "problem": _moved(workdir)}
    if checks["problem"] is None:
        checks["artifacts"], checks["problem"] = _look_at_artifacts(job, workdir)
    if checks["problem"] is None and job.validation is not None:
        script = _Script(job, workdir, guardian, private, mark)
        try:
            content = _trusted_content(job.validation)
            checks["script"], checks["problem"] = script.run(content, environ or os.environ, watcher)
        except BadArtifact as unfit:
            checks["problem"] = f"the validation script {unfit}"
        except OSError as error:
            checks["problem"] = f"the validation script could not be run: {error.strerror}"
    return checks


def _moved(workdir: str) -> str | None:
    """An agent can replace its directory by a link; whatever the link points to would pass for its work."""
    return None if os.path.realpath(workdir) == workdir else f"the workspace {workdir} has become a link"


def _look_at_artifacts(job: Job, workdir: str) -> tuple[list[Json], str | None]:
    found: list[Json] = []
    for artifact in job.expected_artifacts:
        # An absolute path, which only an old record contains, must be inside the workspace too.
        relative = artifact.removeprefix(f"{workdir}/")
        try:
            size, digest = artifact_digest(workdir, relative)
        except BadArtifact as unfit:
            return found, f"{artifact} {unfit}"
        found.append({"path": artifact, "size": size, "sha256": digest})
    return found, None


def _trusted_content(validation: Json) -> bytes:
    path, digest = validation.get("script"), validation.get("sha256")
    if not isinstance(path, str) or not isinstance(digest, str) or not os.path.isabs(path):
        raise BadArtifact("is not named by path and hash")
    content = _content(path, f"{path} ")
    if hashlib.sha256(content).hexdigest() != digest:
        raise BadArtifact(
            f"{path} has changed since it was trusted, and was not run; `mam retry` does not help: register it again"
        )
    return content


def _content(path: str, named: str = "") -> bytes:
    try:
        _, content = read_regular(path, SCRIPT_LIMIT)
    except OSError as error:
        raise BadArtifact(f"{named}cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadArtifact(f"{path!a} is not the name of a file") from None
    if not content or len(content) > SCRIPT_LIMIT:
        raise BadArtifact(f"{named}is empty" if not content else f"{named}has more than {SCRIPT_LIMIT:,} bytes")
    return content


class _Script:
    """Runs a private copy of a script."""

    def __init__(self, job: Job, workdir: str, guardian: GuardianClient, private: str, mark: str) -> None:
        self._job = job
        self._workdir = workdir
        self._guardian = guardian
        self._copy = f"{private}.validation"
        self._log = f"{private}.validation-output"
        self._mark = mark
        self._seconds = _seconds(job)

    def run(self, content: bytes, environ: Mapping[str, str], watcher: Watcher | None) -> tuple[Json, str | None]:
        plan = Plan(
            argv=(self._copy,) if _is_program(content) else ("/bin/sh", self._copy),
            env=script_environment(environ, self._job, self._mark),
            cwd=self._workdir,
            log_limit=_LOG_LIMIT,
        )
        self._clear()
        started = time.monotonic()
        try:
            write_private(self._copy, content, 0o700)
            last, late = self._run(plan, watcher)
            facts: Json = {
                "exit_code": last.exit_code if isinstance(last, Ended) else None,
                "seconds": round(time.monotonic() - started, 3),
                "output": self._output(),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        finally:
            self._clear()
        return facts, self._problem(last, late)

    def _run(self, plan: Plan, watcher: Watcher | None) -> tuple[LastMessage | None, bool]:
        for _ in range(_BUSY_TRIES):
            if watcher is not None:
                plan = plan.replace(keep_alive_seconds=watcher.keep_alive_seconds())
            with self._guardian.start(plan, self._log) as run:
                if watcher is not None:
                    watcher.attach(run)
                late = self._follow(run)
                self._guardian.return_keeper(run.take_idle_keeper())  # no record names this keeper
            # A thread that forked while the copy was written may still have it open for a moment.
            if not (isinstance(run.ended, Failed) and os.strerror(errno.ETXTBSY) in run.ended.reason):
                break
            time.sleep(0.01)
        return run.ended, late

    def _follow(self, run: Run) -> bool:
        """Waits for the end; returns whether the script had to be ended because it took too long."""
        ends, late = time.monotonic() + self._seconds, False
        while run.ended is None and run.is_open():
            run.wait(None if late else max(0.0, ends - time.monotonic()))
            if not late and run.ended is None and time.monotonic() >= ends:
                late = True
                run.stop(_GRACE_SECONDS, "the validation script took too long")
        return late

    def _problem(self, last: LastMessage | None, late: bool) -> str | None:
        if late:
            return f"the validation script was not done within {self._seconds} s"
        if not isinstance(last, Ended):
            return f"the validation script could not be run: {'it was stopped' if last is None else last.reason}"
        if last.signal is not None:
            return f"the validation script was ended by signal {last.signal}"
        return None if last.exit_code == 0 else f"the validation script ended with {last.exit_code}"

    def _output(self) -> str:
        """The end of the output. NUL is valid in Python but not in a database."""
        parts = b"".join(read(self._log, max(0, length(self._log) - OUTPUT_LIMIT)))
        return parts[-OUTPUT_LIMIT:].decode(errors="replace").replace("\0", "\ufffd")

    def _clear(self) -> None:
        try:
            os.unlink(self._copy)
        except FileNotFoundError:
            pass
        remove_tree(self._log)
        remove_tree(self._log + MORE)


def _is_program(content: bytes) -> bool:
    """Whether the kernel can execute it; a script without a `#!` line is run by the shell."""
    return content.startswith(b"#!") or b"\0" in content[:1024]


def _seconds(job: Job) -> int:
    asked = (job.validation or {}).get("timeout_sec", DEFAULT_SECONDS)
    return asked if type(asked) is int and 0 < asked <= 86_400 else DEFAULT_SECONDS
