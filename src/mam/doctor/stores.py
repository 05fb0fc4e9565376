"""Check the list of stores that this user has opened; `--fix` removes missing stores."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, first_few, note
from mam.util.state_dir import forget_store, known_stores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(_patient: Context) -> Iterator[Finding]:
    known = known_stores()
    gone = [address for address in known if _is_gone(address)]
    if gone:
        yield note(
            f"{count(len(gone), 'store')} of your list missing: {first_few(gone)}",
            "`mam list --everywhere` lists them as missing",
            fix=lambda: _forget(gone),
        )
    else:
        yield fine(f"{count(len(known), 'store')} in your list")


def _is_gone(address: str) -> bool:
    """A server that does not answer is not missing. mam lists a store again when it is next opened."""
    path = address.removeprefix("sqlite://")
    return path.startswith("/") and not os.path.lexists(path)


def _forget(addresses: list[str]) -> None:
    for address in addresses:
        if _is_gone(address):
            forget_store(address)
