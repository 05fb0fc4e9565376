"""Check for temporary files of killed writers; `--fix` removes old ones."""

from __future__ import annotations

import os
import re
import stat
import time

from mam.config.settings import config_file
from mam.doctor.finding import count, fine, first_few, note
from mam.location.stores import FILES
from mam.util.state_dir import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

OLD_SECONDS = 3600
RECORD_SECONDS = 60
"""For record files, which mam writes quickly under the lock."""
_RECORD = re.compile(r"\.[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:\.events)?(?:\.[0-9a-f]{8})?\.tmp")
_MADE_BY_MAM = re.compile(
    r"(?:secrets|pauses\.json|trusted\.json|config\.toml)\.[0-9a-f]{12}\.tmp"
    r"|(?:relay-[0-9a-f]{12}|audit\.failures|config\.json|project\.json)\.[0-9]+\.tmp"
    r"|registry\.db\.new(?:-wal|-shm)?"
)
"""Only names that mam uses; files of other programs stay."""


def check(context: Context) -> Iterator[Finding]:
    places = (context.directory, context.home, state_directory(), os.path.dirname(config_file()))
    old = [path for place in places for path in _leftovers(place, _MADE_BY_MAM, OLD_SECONDS)]
    if context.kind == FILES:
        old += _leftovers(context.directory, _RECORD, RECORD_SECONDS)
    if old:
        yield note(
            f"{count(len(old), 'file')} of killed writers: {_names(old)}",
            "they only use disk space",
            fix=lambda: _remove(old),
        )
    if not old:
        yield fine("no leftover files")


def _names(paths: list[str]) -> str:
    return first_few(list(map(os.path.basename, paths)))


def _leftovers(directory: str | None, pattern: re.Pattern[str], seconds: float) -> list[str]:
    try:
        names = os.listdir(directory) if directory is not None else []
    except OSError:
        return []
    paths = (os.path.join(directory or "", name) for name in names if pattern.fullmatch(name))
    return [path for path in paths if _is_old(path, seconds)]


def _is_old(path: str, seconds: float) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    return mine and time.time() - found.st_mtime > seconds


def _remove(paths: list[str]) -> None:
    for path in paths:
        if _is_old(path, RECORD_SECONDS):
            os.unlink(path)
