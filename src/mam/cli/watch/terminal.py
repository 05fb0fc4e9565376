"""The terminal as `mam watch` uses it: keys one by one, a screen of its own, and everything as it was on every way out.

Ctrl-C, SIGTERM and SIGHUP end the watch by an exception, so that leaving is one path. Ctrl-Z leaves too, stops, and
comes back when the shell says so.
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

# The other screen, no cursor, no wrapping at the edge; and back.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_ESCAPE_SECONDS = 0.05
"""How long the rest of a key's sequence may take."""


class Terminal:
    def __init__(self, wake_fd: int, wake_write_fd: int) -> None:
        """`bell` wakes `wait`; `rope` rings it, which is what signals do."""
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
        # Nothing may come between now: a second Ctrl-C would leave the terminal half restored.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._restore()
        signal.set_wakeup_fd(self._wakeup)
        for caught, handler in self._handlers.items():
            signal.signal(caught, handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, now."""
        try:
            found = os.get_terminal_size(self._screen)
        except OSError:
            return 80, 24
        return (found.columns or 80), (found.lines or 24)

    def show(self, lines: list[str]) -> None:
        """Each line is as wide as the screen, so that nothing has to be erased first."""
        sys.stdout.write("\x1b[H" + "\r\n".join(lines) + "\x1b[m")
        sys.stdout.flush()

    def wait(self, seconds: float) -> list[str]:
        """Until a key, the bell or a signal, or for so long; the keys that came."""
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
        """Those that nobody has read yet."""
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
        # To this very thread, so that it is stopped here and nowhere else until somebody continues it.
        signal.pthread_kill(get_ident(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note_signal)
        self._resumed = True

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        """Only noted: the screen may be half drawn. The wait ends by itself, and then it is done."""
        if number == signal.SIGTSTP:
            self._stop = True
        elif number == signal.SIGCONT:
            self._resumed = True


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
