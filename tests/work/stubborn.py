"""Agents that resist being ended, and a worker that can be killed with all that it started."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from mam.machine.processes import ProcessId, identify, send_signal
from mam.work.process.messages import Started
from tests.work.support import PATIENCE, await_gone

if TYPE_CHECKING:
    from mam.work.process.runner import Run

DAEMON = """
import os, sys, signal, time
def report():
    with open(sys.argv[1], "w") as pids:
        pids.write(f"{os.getpid()}\\n")
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            report()
            while True: time.sleep(1000)
        os._exit(0)
    os.wait()
"""
IGNORE = "for name in ('SIGTERM', 'SIGINT', 'SIGHUP'): signal.signal(getattr(signal, name), signal.SIG_IGN)\n"
SLEEP = "report()\nwhile True: time.sleep(1000)\n"


def started(run: Run) -> tuple[ProcessId, ProcessId]:
    message = run.wait(PATIENCE)
    assert isinstance(message, Started)
    assert message.agent is not None
    assert message.keeper is not None
    return message.agent, message.keeper


class WorkerProcess:
    """A worker that really is another process."""

    def __init__(self, log: str, argv: tuple[str, ...]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.work.a_worker", log, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        guardian, agent = identify(said["guardian"]), ProcessId.from_json(said["agent"])
        keeper, worker = ProcessId.from_json(said["keeper"]), identify(self.process.pid)
        assert guardian is not None
        assert agent is not None
        assert keeper is not None
        assert worker is not None
        self.guardian, self.agent, self.keeper, self.worker = guardian, agent, keeper, worker

    def kill(self, *who: ProcessId) -> None:
        """All at once: none of them may see another one's end, and still do something about it."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in who:
                assert send_signal(process, number)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        await_gone([self.keeper, self.guardian])
