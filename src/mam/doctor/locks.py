"""Whether somebody sits on the store's lock. A lock dies with its holder, so only a holder that lives can be stuck."""

from __future__ import annotations

import fcntl
import os
import time

from mam.doctor.finding import fine, wrong
from mam.errors import StoreUnavailable
from mam.stores.files.lock import LOCK_FILE, holder
from mam.workspace import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient

PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 0.05


def look(patient: Patient) -> Iterator[Finding]:
    """Before anything waits for it: a check that waited would find the lock free, and nobody would have been told."""
    places = []
    if patient.kind == FILES and patient.directory is not None:
        places.append(patient.directory)
    if patient.located is not None:
        places.append(patient.located.logs_dir)
    stuck = {place: finding for place in places if (finding := _stuck(os.path.join(place, LOCK_FILE))) is not None}
    yield from stuck.values()
    if places and not stuck:
        yield fine("nobody sits on a lock")
    if patient.closed is None and patient.directory in stuck:
        problem = "its lock is held, so that it is not looked at; try again later"
        patient.closed = StoreUnavailable(store=patient.directory, problem=problem)


def _stuck(path: str) -> Finding | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None  # nothing to hold; what is in its place is another check's to tell
    except OSError as error:
        return wrong(f"{path}: {error.strerror}", "nobody can take the lock, so that nothing can be written")
    try:
        who = _held_by_one(descriptor)
    finally:
        os.close(descriptor)
    if who is None:
        return None
    pid = who.rpartition(" ")[2]
    return wrong(
        f"{path} is held{who}, and has been for {PATIENCE_SECONDS:g} s",
        "everybody else waits for it and gives up after lock_wait_seconds",
        f"ps -fp {pid}" if pid.isdigit() else f"fuser -v {path}",
    )


def _held_by_one(descriptor: int) -> str | None:
    """Who holds it all the time; None when it was free, or went from hand to hand."""
    ends, holders = time.monotonic() + PATIENCE_SECONDS, set()
    while time.monotonic() < ends:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except BlockingIOError:
            holders.add(holder(descriptor))
        else:
            return None
        if len(holders) > 1:
            return None
        time.sleep(_LOOK_SECONDS)
    return holders.pop() if holders else None
