"""Makes signals pollable: the handler does nothing, and the number arrives as a byte in a pipe."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class SignalPipe:
    """Create a new one after a fork: the pipe belongs to the parent."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._end, self._sending_end = os.pipe()
        os.set_blocking(self._end, False)
        os.set_blocking(self._sending_end, False)
        signal.set_wakeup_fd(self._sending_end, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _nothing)

    def fileno(self) -> int:
        return self._end

    def close(self) -> None:
        """For the child of a fork, which has its own."""
        signal.set_wakeup_fd(-1)
        os.close(self._end)
        os.close(self._sending_end)

    def read(self) -> bytes:
        """The numbers of the signals that came; several of one kind may be one."""
        try:
            return os.read(self._end, 1 << 12)
        except BlockingIOError:
            return b""


def _nothing(_number: int, _frame: FrameType | None) -> None:
    pass
