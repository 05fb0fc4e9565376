"""The real command under strace: killed before, or given an error by, any call with which it touches a store.

Each starts from a prepared state, as a user starts it. `command_kills.py` kills the same commands by the thousand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.util.frozen import Frozen
from tests.audit.support import history_in, history_in_log
from tests.faults.invariants import check_history, check_store
from tests.faults.store_kinds import StoreKind, copied
from tests.needs import program
from tests.sample_jobs import JobHistory, SampleJobs

CALLS = (
    "openat", "mkdir", "flock", "fcntl", "pread64", "write", "pwrite64", "ftruncate", "utimensat", "fsync", "fdatasync",
    "rename", "renameat", "unlink", "unlinkat", "close",
)  # fmt: skip
LONGEST = 120.0
TALK = "mam: retry "
"""A command prints this after its act, before it sends events; the error may still come then."""

COMMANDS = {
    "register": "register work --agent codex --agent-session {sample.label}",
    "pick": "pick --agent-session {sample.label}",
    "publish": "publish {sample.running} progress --attempt 1",
    "heartbeat": "heartbeat {sample.running} --attempt 1",
    "ask": "ask Which? --job {sample.running} --attempt 1",
    "answer": "answer {sample.asking} allow",
    "complete": "complete {sample.running} --attempt 1 --result r",
    "fail": "fail {sample.running} --attempt 1 --reason r",
    "fail retryably": "fail {sample.running} --attempt 1 --reason r --retryable",
    "release": "release {sample.running} --attempt 1",
    "cancel": "cancel {sample.pending}",
    "retry": "retry {sample.ended}",
    "set a status": "status {sample.pending} --set completed",
}


class Moment(Frozen):
    """The Nth time that the command makes this call."""

    call: str
    nth: int

    def __str__(self) -> str:
        return f"{self.call}:{self.nth}"


class Result(Frozen):
    code: int
    said: str
    history: JobHistory


class PreparedStore:
    """A prepared store, restored for every run."""

    def __init__(self, store_kind: StoreKind, folder: Path) -> None:
        self._strace = program("strace")
        self._store_kind = store_kind
        self._origin, self.place = folder / "origin", folder / "place"
        store_kind.make(self._origin)
        store = store_kind.open(self._origin)
        self.sample = SampleJobs(Registry(store), "run")
        store.close()
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ},
            "HOME": str(folder), "MAM_STORE": store_kind.address(self.place), "PYTHONHASHSEED": "0",
            "DELEGATE_JOB_LOGS_DIR": str(self.place / "logs"), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    def moments(self, verb: str) -> list[Moment]:
        """Each call that the command makes below its place."""
        copied(self._origin, self.place)
        trace = self.place.parent / "trace"
        self._run(verb, "-y", "-e", f"trace={','.join(CALLS)}", "-o", str(trace))
        counts = dict.fromkeys(CALLS, 0)
        found = []
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
            call = line.split(maxsplit=1)[1].partition("(")[0]
            if call in counts:
                counts[call] += 1
                if str(self.place) in line:
                    found.append(Moment(call=call, nth=counts[call]))
        assert len(found) > 30, "strace no longer sees the store"
        return found

    def undisturbed(self, verb: str) -> JobHistory:
        copied(self._origin, self.place)
        code, said = self._run(verb)
        assert code == 0, said
        return self._judged(self.place)

    def disturbed(self, verb: str, moment: Moment, fault: str) -> Result:
        """`fault` in strace's words: signal=SIGKILL, error=EIO, …"""
        copied(self._origin, self.place)
        inject = f"inject={moment.call}:{fault}:when={moment.nth}"
        quick = [] if fault.startswith("signal") else ["--seccomp-bpf"]  # with which strace 6.1 sends no signal
        code, said = self._run(verb, *quick, "-e", f"trace={moment.call}", "-e", inject, "-o", "/dev/null")
        return Result(code=code, said=said, history=self._judged(self.place))

    def _run(self, verb: str, *tracing: str) -> tuple[int, str]:
        words = COMMANDS[verb].format(sample=self.sample).split()
        command = [sys.executable, "-m", "mam", *words]
        if tracing:
            command = [self._strace, "-f", "-qq", *tracing, *command]
        ran = subprocess.run(
            command, env=self._environment, cwd=self.place.parent, capture_output=True, timeout=LONGEST, check=False
        )
        return ran.returncode, ran.stderr.decode()

    def _judged(self, place: Path) -> JobHistory:
        """Checks the store and the audit log as the next process finds them, and returns the history of the jobs."""
        store = self._store_kind.open(place)
        try:
            check_store(self._store_kind, place, store)
            logs = place / "logs"
            AuditLog(str(logs)).follow(store)
            assert history_in_log(logs) == history_in(store)
            return self.sample.history(store)
        finally:
            store.close()


def killed(prepared: PreparedStore, verb: str, moment: Moment, expected: JobHistory) -> bool:
    """Returns whether the command was killed; raises if a promise was broken."""
    ran = prepared.disturbed(verb, moment, "signal=SIGKILL")
    check_history(expected, ran.history, acknowledged=ran.code == 0)
    return ran.code != 0


def failing(prepared: PreparedStore, verb: str, moment: Moment, error: str, expected: JobHistory) -> None:
    """The command does the act, or rejects it in one line with exit code 9. The next command shows which."""
    ran = prepared.disturbed(verb, moment, f"error={error}")
    where = f"{verb}, {error} at {moment}: {ran.said}"
    check_history(expected, ran.history, acknowledged=ran.code == 0)
    assert ran.code in (0, 9), where
    assert "Traceback" not in ran.said, where
    assert "bug in mam" not in ran.said, where
    complaints = [line for line in ran.said.splitlines() if not line.startswith(TALK)]
    assert ran.code == 0 or len(complaints) == 1, where
