"""The one thing of the kernel that Python does not offer: a process that inherits the orphans below it."""

from __future__ import annotations

import sys

_SET_NAME, _SET_CHILD_SUBREAPER = 15, 36

if sys.platform == "linux":
    import ctypes

    _prctl = ctypes.CDLL(None).prctl
    _prctl.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def become_subreaper(name: str) -> None:
    """From now on whoever below this process loses its parent becomes its child, and none gets away by forking twice.

    The name is what `ps` and `top` show. Other systems than Linux have neither.
    """
    if sys.platform == "linux":
        _prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _prctl(_SET_NAME, name.encode(), 0, 0, 0)
