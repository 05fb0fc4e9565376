"""The terminal of `mam watch`: single keys, the alternate screen, and a restored terminal at the end.

Ctrl-C, SIGTERM and SIGHUP raise an exception, so that there is one exit path. Ctrl-Z restores the terminal, stops the
process, and draws the screen again when the shell continues it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from threading import get_ident

from mam.cli.watch.keys import flush_keys, parse_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Self

# The alternate screen without cursor and line wrapping, with marks around what is pasted; and back.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
_LEAVE = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
_ESCAPE_SECONDS = 0.05
"""How long to wait for the rest of an escape sequence."""


class Terminal:
    def __init__(self, wake_fd: int, wake_write_fd: int) -> None:
        """`wake_fd` wakes `wait`; signals write to `wake_write_fd`."""
        self._keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._screen = sys.stdout.fileno()
        self._wake_fd = wake_fd
        self._wake_write_fd = wake_write_fd
        self._before: list[Any] | None = None
        self._rest = b""
        self._stop = self._resumed = False
        self._handlers: dict[int, Any] = {}
        self._wakeup = -1

    def __enter__(self) -> Self:
        self._wakeup = signal.set_wakeup_fd(self._wake_write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, _end)
        for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH):
            self._handlers[number] = signal.signal(number, self._note_signal)
        try:
            self._enter_screen()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        # A second Ctrl-C must not interrupt the restoration of the terminal.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._restore()
        signal.set_wakeup_fd(self._wakeup)
        for caught, handler in self._handlers.items():
            signal.signal(caught, handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            found = os.get_terminal_size(self._screen)
        except OSError:
            return 80, 24
        return (found.columns or 80), (found.lines or 24)

    def show(self, lines: list[str]) -> None:
        """Draws lines of the full width, so that nothing has to be erased first."""
        sys.stdout.write("\x1b[H" + "\r\n".join(lines) + "\x1b[m")
        sys.stdout.flush()

    def wait(self, seconds: float) -> list[str]:
        """Wait for a key, a notification, a signal or the timeout; return the keys."""
        poll = select.poll()
        poll.register(self._wake_fd, select.POLLIN)
        if self._keys is not None:
            poll.register(self._keys, select.POLLIN)
        pause = _ESCAPE_SECONDS if self._rest else seconds
        ready = dict(poll.poll(max(0.0, pause) * 1000))
        if self._stop:
            self._suspend()
        if self._resumed:
            self._resumed = False
            self._enter_screen()
        if self._keys is not None and self._keys in ready:
            return self._read()
        rest, self._rest = self._rest, b""
        return flush_keys(rest)

    def discard_keys(self) -> None:
        """Drop the keys that have not been read."""
        self._rest = b""
        if self._keys is not None:
            termios.tcflush(self._keys, termios.TCIFLUSH)

    def _read(self) -> list[str]:
        assert self._keys is not None
        try:
            data = os.read(self._keys, 4096)
        except OSError:
            data = b""
        if not data:
            raise SystemExit(128 + signal.SIGHUP)  # the terminal is gone
        keys, self._rest = parse_keys(self._rest + data)
        return keys

    def _enter_screen(self) -> None:
        if self._keys is not None:
            if self._before is None:
                self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys, termios.TCSADRAIN)
        sys.stdout.write(_ENTER)
        sys.stdout.flush()

    def _restore(self) -> None:
        try:
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
        except (OSError, ValueError):
            pass
        if self._keys is not None and self._before is not None:
            try:
                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)
            except termios.error:
                pass
            self._before = None

    def _suspend(self) -> None:
        self._stop = False
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # To this thread, so that the process stops exactly here.
        signal.pthread_kill(get_ident(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note_signal)
        self._resumed = True

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        """Only records the signal, because the screen may be half drawn; `wait` returns and handles it."""
        if number == signal.SIGTSTP:
            self._stop = True
        elif number == signal.SIGCONT:
            self._resumed = True


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
