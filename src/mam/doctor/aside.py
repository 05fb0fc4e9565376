"""Check for files that mam moved aside instead of deleting them."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, first_few, note, wrong
from mam.util.state_dir import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    home = context.home or context.directory
    directory = os.path.join(home, "aside") if home else ""
    aside = [name for name in _names(directory) if name.endswith(".json")]
    if aside:
        yield note(
            f"{count(len(aside), 'record file')} that another program changed, moved aside: {first_few(aside)}",
            "their content takes effect only through `mam adopt`",
            f"inspect them, then rm -r {directory}",
        )
    damaged = [
        os.path.join(place, name)
        for place in (home, state_directory())
        if place
        for name in _names(place)
        if ".damaged" in name and not name.endswith(("-wal", "-shm"))
    ]
    for path in damaged:
        yield wrong(
            f"mam could not read {path} and moved it aside",
            "its content (tokens, pauses, trust) is no longer in effect",
            f"inspect it, then rm {path}",
        )
    if not aside and not damaged:
        yield fine("no files were moved aside")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
