"""Taking away what is no record any more: every entry gets its reason, and one failure stops nothing."""

from __future__ import annotations

from mam.agents.acts import removal_reason, take_away
from mam.agents.lease import GRACE_SECONDS
from mam.agents.lookup import LIVE, NEWER, judged
from mam.errors import MamError
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.lookup import Look
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord, Json
    from mam.util.clock import Moment


class Item(Frozen):
    agent_id: str
    path: str
    reason: str


class Report(Frozen):
    """Each entry stands in exactly one of the four."""

    root: str
    dry_run: bool
    grace_seconds: float
    planned: tuple[Item, ...]
    """What a run that is no rehearsal would remove."""
    applied: tuple[Item, ...]
    kept: tuple[Item, ...]
    failed: tuple[Item, ...]

    def to_json(self) -> Json:
        lists = ("planned", "applied", "kept", "failed")
        return {**self.as_dict(), **{name: [item.as_dict() for item in getattr(self, name)] for name in lists}}


def clean_up(directory: Directory, *, dry_run: bool, grace_seconds: float = GRACE_SECONDS) -> Report:
    found: dict[str, list[Item]] = {"planned": [], "applied": [], "kept": [], "failed": []}

    def handle(look: Look, reason: str | None, away: Callable[[], AgentRecord | None]) -> None:
        if reason is None:
            found["kept"].append(_item(look, _kept(look, directory.clock.now())))
        elif dry_run:
            found["planned"].append(_item(look, reason))
        else:
            where, item = _tried(look, reason, away)
            found[where].append(item)

    act = take_away(grace_seconds)
    remains = list(directory.remains())  # before anything is put aside here
    for look in list(directory.looks()):
        reason = removal_reason(look, directory.clock.now(), grace_seconds)
        handle(look, reason, lambda look=look: directory.change(look.agent_id, act))  # type: ignore[misc]
    for look in remains:
        handle(look, look.reason, lambda look=look: directory.discard(look))  # type: ignore[misc]
    lists = {name: tuple(items) for name, items in found.items()}
    return Report(root=directory.address, dry_run=dry_run, grace_seconds=grace_seconds, **lists)


def _tried(look: Look, reason: str, away: Callable[[], AgentRecord | None]) -> tuple[str, Item]:
    try:
        stays = away()
    except (MamError, OSError) as error:
        return "failed", _item(look, f"{reason}; it could not be removed: {error}")
    if stays is not None:
        return "kept", _item(look, "it has been published anew meanwhile")
    return "applied", _item(look, reason)


def _item(look: Look, reason: str) -> Item:
    return Item(agent_id=look.agent_id, path=look.path, reason=reason)


def _kept(look: Look, now: Moment) -> str:
    if look.kind == NEWER:
        return f"it was written by a newer program ({look.reason})"
    answer = judged(look, now)
    if answer.kind == LIVE and look.record is not None and look.record.liveness is not None:
        return f"its lease holds until {look.record.liveness.lease_expires_at}"
    return answer.reason
