"""Temporary files of writers that were killed. They hurt nobody, and are taken away when they are old enough."""

from __future__ import annotations

import os
import re
import stat
import time

from mam.config import config_file
from mam.doctor.finding import count, fine, note, some
from mam.state import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient

OLD_SECONDS = 3600
_MADE_BY_MAM = re.compile(
    r"\.[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.[0-9a-f]{12}\.tmp"  # a record
    r"|(?:secrets|pauses\.json|trusted\.json|config\.toml)\.[0-9a-f]{12}\.tmp"
    r"|(?:relay-[0-9a-f]{12}|audit\.failures|config\.json|project\.json)\.[0-9]+\.tmp"
    r"|\.journal\.new"
)
"""Only names that mam itself gives: other programs' temporary files are their own business."""


def look(patient: Patient) -> Iterator[Finding]:
    places = [patient.directory, patient.home, state_directory(), os.path.dirname(config_file())]
    old = [path for place in places if place is not None for path in _leftovers(place)]
    if old:
        yield note(
            f"{count(len(old), 'file')} of writers that were killed: {some(list(map(os.path.basename, old)))}",
            "they only take space",
            fix=lambda: _remove(old),
        )
    else:
        yield fine("no leftovers")


def _leftovers(directory: str) -> Iterator[str]:
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        path = os.path.join(directory, name)
        if _MADE_BY_MAM.fullmatch(name) and _is_old(path):
            yield path


def _is_old(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    return mine and time.time() - found.st_mtime > OLD_SECONDS


def _remove(paths: list[str]) -> None:
    for path in paths:
        if _is_old(path):
            os.unlink(path)
