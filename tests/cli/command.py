"""Runs the real command as a process, with a home directory of its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 60.0


@dataclass(frozen=True)
class Ran:
    """The outcome of a command."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def line(self) -> str:
        """The only line of stdout of a command that succeeded."""
        assert self.code == 0, self.stderr
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        return lines[0]

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def failed(self, code: int, *words: str) -> None:
        """Checks for one message with these words, and nothing on stdout."""
        assert self.code == code, self.stderr
        assert self.out == ""
        lines = self.stderr.splitlines()
        assert len(lines) == 1, self.stderr
        message = json.loads(lines[0])["error"]["message"] if lines[0].startswith("{") else lines[0]
        assert message is not lines[0] or message.startswith("mam: ")
        for word in words:
            assert word in message, message


class Mam:
    """`mam("list", "--json")` runs the command in `here`, without the user's files and settings."""

    def __init__(self, here: Path, home: Path) -> None:
        self.here = here
        self.home = home
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
        self.env = {
            **kept,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_CACHE_HOME": str(home / "cache"),
        }

    def __call__(self, *words: str, stdin: bytes = b"", cwd: Path | None = None, **env: str) -> Ran:
        ran = subprocess.run(
            self._argv(words), input=stdin, capture_output=True, cwd=cwd or self.here,
            env={**self.env, **env}, timeout=LONGEST,
        )  # fmt: skip
        return Ran(ran.returncode, ran.stdout, ran.stderr.decode())

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._argv(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.here, env=self.env,
        )  # fmt: skip

    def on_terminal(self, *words: str, columns: int = 120) -> Ran:
        """The command on a terminal, which shows both stdout and stderr."""
        import fcntl
        import pty
        import struct
        import termios

        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        with subprocess.Popen(
            self._argv(words), stdin=slave, stdout=slave, stderr=slave, cwd=self.here,
            env={**self.env, "TERM": "xterm-256color"},
        ) as process:  # fmt: skip
            os.close(slave)
            shown = _read_all(master)
            code = process.wait(LONGEST)
        os.close(master)
        return Ran(code, shown, "")

    def register(self, prompt: str = "do it", *words: str) -> str:
        return self("register", prompt, "--agent", "shell", *words).line

    def status(self, job: str) -> str:
        return self("status", job).line

    def record(self, job: str) -> dict[str, Any]:
        record: dict[str, Any] = self("get", job).json
        return record

    def _argv(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "mam", *words]


def finish(process: subprocess.Popen[bytes]) -> Ran:
    out, err = process.communicate(timeout=LONGEST)
    return Ran(process.returncode, out, err.decode())


def _read_all(master: int) -> bytes:
    shown = b""
    while select.select([master], [], [], LONGEST)[0]:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break  # Linux reports this when the last writer has closed the terminal
        if not piece:
            break
        shown += piece
    return shown.replace(b"\r\n", b"\n")
