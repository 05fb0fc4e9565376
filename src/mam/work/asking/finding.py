"""Finds the asker of a process that an agent has started."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.work.asking.port import Asker


def find_asker(environ: Mapping[str, str]) -> Asker | None:
    """None if the process belongs to no job, or to one that may not ask. StoreUnavailable if its worker is gone."""
    if environ.get("MAM_SESSION_DIR") and not environ.get("MAM_JOB_ID"):
        from mam.work.asking.at_session import session_asker

        return session_asker(environ)
    from mam.work.asking.at_door import door_asker

    return door_asker(environ)
