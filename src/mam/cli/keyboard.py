"""Single keys of the user's terminal, for as long as a question waits for one."""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Keyboard:
    """Closed at first: the terminal is as the shell left it. Ctrl-C and Ctrl-Z work as always."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._before: list[Any] | None = None

    def open(self) -> bool:
        """Forgets what was typed before. False if the keys do not come here: without a terminal, or in the
        background."""
        import termios
        import tty

        if self._terminal is None or os.tcgetpgrp(self._terminal) != os.getpgrp():
            return False
        if self._before is None:
            self._before = termios.tcgetattr(self._terminal)
            tty.setcbreak(self._terminal, termios.TCSADRAIN)
        termios.tcflush(self._terminal, termios.TCIFLUSH)
        return True

    def read(self) -> str:
        """The keys that were typed meanwhile; empty while it is closed."""
        if self._terminal is None or self._before is None or not select.select([self._terminal], [], [], 0)[0]:
            return ""
        try:
            return os.read(self._terminal, 64).decode("ascii", "replace")
        except OSError:
            return ""  # the terminal is gone

    def close(self) -> None:
        if self._terminal is None or self._before is None:
            return
        import termios

        try:
            termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
        except termios.error:
            pass  # the terminal is gone
        self._before = None
