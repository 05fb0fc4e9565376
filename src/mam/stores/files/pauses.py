"""The pauses of a files store: one small file, and a bell beside the records that wakes those who wait."""

from __future__ import annotations

import os

from mam.jobs.pause import Pause, pause_of
from mam.stores.beside import read_whole, replace_whole
from mam.stores.watch import BELL

NAME = "pauses"


def read_pauses(home: str) -> list[Pause]:
    found = read_whole(os.path.join(home, NAME))
    return [pause_of(fields) for fields in found if isinstance(fields, dict)] if isinstance(found, list) else []


def write_pauses(home: str, pauses: list[Pause]) -> None:
    replace_whole(os.path.join(home, NAME), [pause.as_dict() for pause in pauses])


def ring(directory: str) -> None:
    """Not for the store's sake: whoever sleeps looks again by itself after a while."""
    try:
        path = os.path.join(directory, BELL)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError:
        pass
