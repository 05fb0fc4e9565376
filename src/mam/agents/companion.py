"""The companion process of a session: it renews the session's lease and marks the record as stopped when the session
ends.

    python -m mam.agents.companion < options

It is detached from every terminal. If it is killed, the lease expires. It gets its options on stdin, because the
address of a database may contain a password and must not appear in the process table.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

from mam.agents import acts
from mam.agents.errors import NewerRecord, NoServer, NotPublished
from mam.agents.lease import length_seconds
from mam.agents.lookup import FOUND
from mam.agents.tmux import Tmux
from mam.errors import GenerationLost, MamError
from mam.machine.processes import ProcessId, identify, is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord

READY = b"ready\n"
READY_SECONDS = 15.0
MAX_SLEEP_SECONDS = 3600.0
RETRY_SECONDS = 10.0
"""Between two attempts when the directory or tmux does not answer."""

POLL_SECONDS = 2.0
"""The polling interval where the system has no pidfd."""


def start_companion(opener: str, record: AgentRecord) -> bool:
    """Returns when the companion has taken over the lease; False if it did not report that in time."""
    options = {"directory": opener, "agent_id": record.agent_id, "generation_id": record.generation_id}
    process = subprocess.Popen(
        [sys.executable, "-m", "mam.agents.companion"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(json.dumps(options).encode())
        process.stdin.close()
        answered = bool(select.select([process.stdout], [], [], READY_SECONDS)[0])
        answer = process.stdout.read(len(READY)) if answered else b""
    process.returncode = 0  # the companion outlives this command, so Popen must not wait for it
    return answer == READY


class Companion:
    def __init__(self, directory: Directory, agent_id: str, generation_id: str) -> None:
        self._directory = directory
        self._agent_id = agent_id
        self._generation_id = generation_id
        self._lease_seconds = 60.0
        self._process: ProcessId | None = None

    def begin(self) -> None:
        """Enter this process as the record's companion."""
        own = identify(os.getpid())

        def with_companion(record: AgentRecord) -> AgentRecord:
            return record.replace(mam=record.mam.replace(companion=None if own is None else own.to_json()))

        record = self._directory.change(self._agent_id, acts.refresh(self._generation_id, change=with_companion))
        assert record is not None
        self._lease_seconds = length_seconds(record)
        self._process = ProcessId.from_json(record.mam.process)

    def run(self) -> None:
        due = self._next_refresh()
        while True:
            ended = self._wait(max(0.0, due - time.monotonic()))
            if ended and not self._has_session():
                return
            if time.monotonic() >= due:
                if not self._refresh():
                    return
                due = self._next_refresh()

    def _next_refresh(self) -> float:
        return time.monotonic() + min(self._lease_seconds / 3, MAX_SLEEP_SECONDS)

    def _wait(self, seconds: float) -> bool:
        """Whether the program in the pane has ended; False when the time is over."""
        if self._process is None:
            time.sleep(min(seconds, POLL_SECONDS))
            return True
        if not is_alive(self._process):
            return True
        if not hasattr(os, "pidfd_open"):
            time.sleep(min(seconds, POLL_SECONDS))
            return not is_alive(self._process)
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except OSError:
            return True
        try:
            if not is_alive(self._process):
                return True
            return bool(select.select([descriptor], [], [], seconds)[0])
        finally:
            os.close(descriptor)

    def _has_session(self) -> bool:
        """Whether the session remains after its program has ended: its pane may have been respawned. Otherwise end the
        record."""
        while True:
            lookup = self._directory.read(self._agent_id)
            record = lookup.record
            if lookup.kind != FOUND or record is None or record.generation_id != self._generation_id or not record.live:
                return False
            try:
                pane = Tmux(record.mam.socket).pane(record.mam.pane)
            except NoServer:
                pane = None
            except MamError:
                time.sleep(RETRY_SECONDS)  # an unknown state is not an ended session
                continue
            if pane is None or pane.dead or pane.generation != self._generation_id:
                self._end()
                return False
            self._process = identify(pane.pid)
            if self._process is not None and is_alive(self._process):
                return self._refresh()

    def _refresh(self) -> bool:
        process = None if self._process is None else self._process.to_json()

        def with_process(record: AgentRecord) -> AgentRecord:
            return record.replace(mam=record.mam.replace(process=process))

        return self._change_with_retries(acts.refresh(self._generation_id, change=with_process))

    def _end(self) -> None:
        self._change_with_retries(acts.stop(self._generation_id, "session_ended"))

    def _change_with_retries(self, act: acts.Act) -> bool:
        """False if another generation owns the record. Retries while the directory does not answer."""
        while True:
            try:
                self._directory.change(self._agent_id, act)
                return True
            except (GenerationLost, NotPublished, NewerRecord):
                return False
            except MamError:
                time.sleep(RETRY_SECONDS)


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = json.loads(sys.stdin.buffer.read())
    companion = Companion(_directory(options["directory"]), options["agent_id"], options["generation_id"])
    companion.begin()
    os.write(1, READY)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    companion.run()


def _directory(opener: str) -> Directory:
    if opener.startswith(("postgresql://", "postgres://")):
        from mam.agents.postgres_directory import PostgresDirectory

        return PostgresDirectory(opener)
    from mam.agents.files_directory import FilesDirectory

    return FilesDirectory(opener)


if __name__ == "__main__":
    main()
