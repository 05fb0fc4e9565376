"""Real tmux sessions on a tmux server of the test, and programs to run in them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mam.agents.names import default_agent_id
from mam.machine.processes import ProcessId, is_alive
from tests.cli.command import Mam, Ran
from tests.needs import need
from tests.waiting import await_that

LONGEST = 60.0

SINK = """
import os, socket, sys, termios, tty
where, mode = sys.argv[1:3]
tty.setraw(0)
link = socket.socket(socket.AF_UNIX)
link.connect(where)
if mode == "bracketed":
    os.write(1, b"\\x1b[?2004h")
    os.write(1, b"ready")
link.sendall(b"ready\\n")
while data := os.read(0, 65536):
    link.sendall(data)
"""


def with_facts(file: Path) -> dict[str, Any]:
    """A record, with what mam keeps beside it in the group `mam`."""
    record: dict[str, Any] = json.loads(file.read_bytes())
    beside = file.parent / "mam.json"
    groups = json.loads(beside.read_bytes())["generations"] if beside.exists() else {}
    facts = groups.get(record["generation_id"])
    return record if facts is None else record | {"mam": facts}


class Sink:
    """A program in raw mode that forwards every byte of its input."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "sink"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._listener.settimeout(LONGEST)
        self._link: socket.socket | None = None

    def command(self, mode: str = "plain") -> list[str]:
        return [sys.executable, "-c", SINK, str(self._path), mode]

    def await_ready(self) -> None:
        self._link, _ = self._listener.accept()
        self._link.settimeout(LONGEST)
        assert self.read(6) == b"ready\n"

    def read(self, size: int) -> bytes:
        assert self._link is not None
        data = b""
        while len(data) < size:
            piece = self._link.recv(size - len(data))
            assert piece, f"the sink ended after {data!r}"
            data += piece
        return data

    def nothing_more(self) -> bool:
        """Whether no more input arrives; all senders have already returned."""
        assert self._link is not None
        self._link.settimeout(0.3)
        try:
            return self._link.recv(1) == b""
        except TimeoutError:
            return True
        finally:
            self._link.settimeout(LONGEST)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._listener.close()
        self._path.unlink()


class Sessions:
    """mam, with a directory and a tmux server of its own."""

    def __init__(self, mam: Mam, folder: Path) -> None:
        need("tmux")
        self.mam = mam
        self.folder = folder  # short, since a socket's path has 107 bytes
        self.agents = mam.home / "agents"
        mam.env.update(MAM_AGENTS_DIR=str(self.agents), TMUX_TMPDIR=str(folder), SHELL="/bin/sh")

    def start(self, name: str, *command: str) -> str:
        """Returns the generation."""
        return self.mam("agents", "start", name, "--", *command).line.split("\t")[1]

    def tmux(self, *words: str, server: str = "mam") -> str:
        ran = subprocess.run(
            ["tmux", "-u", "-L", server, *words], capture_output=True, text=True, env=self.mam.env, timeout=LONGEST
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def names(self) -> set[str]:
        ran = subprocess.run(
            ["tmux", "-L", "mam", "list-sessions", "-F", "#{session_name}"],
            capture_output=True, text=True, env=self.mam.env, timeout=LONGEST,
        )  # fmt: skip
        return set(ran.stdout.split())

    def file(self, name: str) -> Path:
        return self.agents / "live_agents" / default_agent_id(name) / "record.json"

    def record(self, name: str) -> dict[str, Any]:
        return with_facts(self.file(name))

    def state(self, name: str) -> str:
        return str(self.record(name)["lifecycle"]["state"])

    def process(self, name: str, which: str) -> ProcessId:
        found = ProcessId.from_json(self.record(name)["mam"][which])
        assert found is not None
        return found

    def status(self, name: str) -> dict[str, Any]:
        rows: list[dict[str, Any]] = self.mam("agents", "status", name, "--json").json
        return rows[0]

    def send(self, name: str, text: str, *words: str) -> Ran:
        return self.mam("agents", "send", name, "--file", "-", *words, stdin=text.encode())

    @contextmanager
    def person(self, session: str) -> Iterator[Callable[[bytes], None]]:
        """A tmux client with a terminal, and a function to type into it."""
        pid, master = pty.fork()
        if pid == 0:
            os.execvpe("tmux", ["tmux", "-L", "mam", "attach", "-t", f"={session}:"], {**self.mam.env, "TERM": "xterm"})
        try:
            await_that(lambda: session in self.tmux("list-clients", "-F", "#{session_name}").split())
            yield lambda data: _write(master, data)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            os.close(master)
            os.waitpid(pid, 0)

    def close(self) -> None:
        companions = [self._companion(file) for file in self.agents.glob("live_agents/*/record.json")]
        for server in ("mam", "other", "default"):
            subprocess.run(
                ["tmux", "-L", server, "kill-server"], capture_output=True, env=self.mam.env, timeout=LONGEST
            )
        for companion in companions:
            if companion is not None:
                await_that(lambda companion=companion: not is_alive(companion))  # type: ignore[misc]

    def _companion(self, file: Path) -> ProcessId | None:
        return ProcessId.from_json(with_facts(file).get("mam", {}).get("companion"))


def _write(master: int, data: bytes) -> None:
    os.write(master, data)
