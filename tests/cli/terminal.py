"""A terminal with a person at it: a real pseudo-terminal, its screen kept by a terminal emulator."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

PATIENCE = 90.0
"""Only so that a broken test ends."""

UP, DOWN, ENTER, ESCAPE, CTRL_C, CTRL_Z = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03", "\x1a"


class Terminal:
    def __init__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], columns: int = 100, rows: int = 30
    ) -> None:
        self._master, slave = pty.openpty()
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env={"TERM": "xterm-256color", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self._slave = slave  # kept open, so that its settings can be read when everybody else has gone

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def settings(self) -> list[object]:
        """Of the terminal, as a program would read them."""
        return list(termios.tcgetattr(self._slave))

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def shows(self, *words: str) -> None:
        """Wait until all of them are on the screen."""
        self.until(lambda: all(word in self.text for word in words), f"{words} are not on the screen")

    def shows_not(self, word: str) -> None:
        self.until(lambda: word not in self.text, f"{word!r} is still on the screen")

    def until(self, holds: Callable[[], bool], otherwise: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not holds():
            left = ends - time.monotonic()
            assert left > 0, f"{otherwise}:\n{self.text}"
            self._read(min(left, 1.0))

    def ended(self) -> int:
        """The exit code, when everything that it wrote has been read."""
        ends = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < ends, f"it does not end:\n{self.text}"
            self._read(0.2)
        while self._read(0.0):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        piece = os.read(self._master, 1 << 16)
        self.raw += piece
        self._stream.feed(piece)
        return True

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
