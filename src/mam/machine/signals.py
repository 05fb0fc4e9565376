"""Signals, as the one who started this process wants them."""

from __future__ import annotations

import signal


def not_ignored(*numbers: signal.Signals) -> list[signal.Signals]:
    """Those that this process was not started to ignore. nohup starts it to ignore the hangup."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
