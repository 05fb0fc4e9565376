"""What mam has put aside instead of throwing it away, for the eyes of a person."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, note, some, wrong
from mam.state import state_directory
from mam.stores.files.journal import QUARANTINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient


def look(patient: Patient) -> Iterator[Finding]:
    home = patient.home or patient.directory
    aside = _names(os.path.join(home, QUARANTINE)) if home else []
    torn = [name for name in aside if ".events.log-" not in name]
    logs = [name for name in aside if ".events.log-" in name]
    if home and torn:
        yield note(
            f"{count(len(torn), 'torn end')} of the journal, put aside: {some(torn)}",
            "what was in them had not been acknowledged when its writer was killed",
            f"rm -r {os.path.join(home, QUARANTINE)}",
        )
    if home and logs:
        yield note(
            f"{count(len(logs), 'event log')} that could not be read whole, put aside: {some(logs)}",
            "they were made anew from the journal",
            f"rm {os.path.join(home, QUARANTINE)}/*.events.log-*",
        )
    damaged = [
        os.path.join(place, name)
        for place in (home, state_directory())
        if place
        for name in _names(place)
        if ".damaged" in name and not name.endswith(("-wal", "-shm"))
    ]
    for path in damaged:
        if os.path.basename(path).startswith("index.sqlite"):
            yield note(f"{path} is an index that could not be read", "it was made anew since", f"rm {path}*")
        else:
            yield wrong(
                f"{path} could not be read and was put aside",
                "what it held (tokens, pauses, trust) does not count any more",
                f"look at it, then rm {path}",
            )
    if not aside and not damaged:
        yield fine("nothing was put aside")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
