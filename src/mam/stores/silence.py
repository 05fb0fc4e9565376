"""Which consumers of the journal are silent or lost, and which entries all others have passed."""

from __future__ import annotations

from mam.stores.consumer import parse_position
from mam.util.clock import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.port import Store

DAY_MS = 86_400_000


def silent_consumers(store: Store, days: float) -> list[str]:
    """The consumers that have not handled an entry older than this."""
    return [name for name, position in store.consumers().items() if _is_silent(store, position, days)]


def lost_consumers(store: Store) -> list[str]:
    """The consumers whose next entries were summarised."""
    upto = store.summarised_upto()
    found = {name: parse_position(position) for name, position in store.consumers().items()}
    return [name for name, known in found.items() if known is not None and known[0].is_lost(upto)]


def passed_by_all(store: Store, days: float) -> int:
    """Every consumer that was not silent for so long has handled the entries before this number."""
    end = int(store.end_offset().partition("@")[0])
    behind = [position for position in store.consumers().values() if not _is_silent(store, position, days)]
    return min([end, *(_number(position) for position in behind)])


def _is_silent(store: Store, position: str, days: float) -> bool:
    following = next(iter(store.entries(str(_number(position)))), None)
    if following is None:
        return False
    age_ms = store.clock.now().wall_ms - parse_time(following.lines[0]["timestamp"])
    return age_ms > days * DAY_MS


def _number(position: str) -> int:
    found = parse_position(position)
    return 0 if found is None else found[0].number
