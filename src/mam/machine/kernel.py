"""Calls prctl, which Python does not offer, to make a process adopt its orphaned descendants."""

from __future__ import annotations

import sys

_SET_NAME, _SET_CHILD_SUBREAPER = 15, 36

if sys.platform == "linux":
    import ctypes

    _prctl = ctypes.CDLL(None).prctl
    _prctl.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def become_subreaper(name: str) -> None:
    """A descendant that loses its parent becomes a child of this process, so that none escapes by forking twice.

    `name` is what `ps` and `top` show. Only Linux has both.
    """
    if sys.platform == "linux":
        _prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _prctl(_SET_NAME, name.encode(), 0, 0, 0)
