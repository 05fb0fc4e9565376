"""Sleeps that Debian's faketime (0.9.10) leaves alone, in every interpreter that finds this on its path.

Told not to touch the clock that counts from boot, it still takes each moment of that clock, until which Python sleeps,
for one of the wall clock and moves it: `time.sleep` then fails with "Invalid argument". On an idle machine mam seldom
sleeps, on a busy one it waits for tmux to end.
"""

from __future__ import annotations

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep  # type: ignore[assignment] # whatever Python takes, select takes too
