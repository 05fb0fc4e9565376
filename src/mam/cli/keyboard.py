"""Single keys of the user's terminal, for as long as a question waits for one."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from threading import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Keyboard:
    """Closed at first: the terminal is as the shell left it. Ctrl-C and Ctrl-Z work as always; after Ctrl-Z the shell
    has its terminal back, until `fg`."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
        self._before: list[Any] | None = None
        self._suspends: Any = None

    def open(self) -> bool:
        """Forgets what was typed before. False if the keys do not come here: without a terminal, or in the
        background."""
        if not self._is_in_foreground():
            return False
        if self._before is None:
            self._before = termios.tcgetattr(self._terminal)
            self._suspends = signal.signal(signal.SIGTSTP, self._suspend)
        tty.setcbreak(self._terminal, termios.TCSADRAIN)
        termios.tcflush(self._terminal, termios.TCIFLUSH)
        return True

    def read(self) -> str:
        """The keys that were typed meanwhile; empty while it is closed or in the background."""
        if self._before is None or not self._is_in_foreground():
            return ""
        if termios.tcgetattr(self._terminal)[3] & termios.ICANON:  # the shell has continued this process
            self.open()
        if not select.select([self._terminal], [], [], 0)[0]:
            return ""
        try:
            return os.read(self._terminal, 64).decode("ascii", "replace")
        except OSError:
            return ""  # the terminal is gone

    def close(self) -> None:
        if self._before is not None:
            self._restore()
            signal.signal(signal.SIGTSTP, self._suspends)
            self._before = None

    def _is_in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:
            return False  # no terminal, or it is gone

    def _restore(self) -> None:
        if not self._is_in_foreground():
            return  # the terminal is as its shell wants it
        try:
            termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before or [])
        except termios.error:
            pass  # the terminal is gone

    def _suspend(self, _number: int, _frame: object) -> None:
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # To this thread, so that the process stops exactly here.
        signal.pthread_kill(get_ident(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._suspend)
