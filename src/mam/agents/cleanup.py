"""Removal of expired records and leftovers. Every entry gets a reason, and one failure does not stop the others."""

from __future__ import annotations

from mam.agents.acts import removal_reason, remove_if_expired
from mam.agents.lease import GRACE_SECONDS
from mam.agents.lookup import LIVE, NEWER, resolve_lookup
from mam.errors import MamError
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.lookup import Lookup
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord, Json
    from mam.util.clock import Moment


class CleanupItem(Frozen):
    agent_id: str
    path: str
    reason: str


class CleanupReport(Frozen):
    """Each entry is in exactly one of the four lists."""

    root: str
    dry_run: bool
    grace_seconds: float
    planned: tuple[CleanupItem, ...]
    """What a dry run would remove."""
    applied: tuple[CleanupItem, ...]
    kept: tuple[CleanupItem, ...]
    failed: tuple[CleanupItem, ...]

    def to_json(self) -> Json:
        lists = ("planned", "applied", "kept", "failed")
        return {**self.as_dict(), **{name: [item.as_dict() for item in getattr(self, name)] for name in lists}}


def clean_up(directory: Directory, *, dry_run: bool, grace_seconds: float = GRACE_SECONDS) -> CleanupReport:
    found: dict[str, list[CleanupItem]] = {"planned": [], "applied": [], "kept": [], "failed": []}

    def handle(lookup: Lookup, reason: str | None, remove: Callable[[], AgentRecord | None]) -> None:
        if reason is None:
            found["kept"].append(_item(lookup, _keep_reason(lookup, directory.clock.now())))
        elif dry_run:
            found["planned"].append(_item(lookup, reason))
        else:
            where, item = _try_remove(lookup, reason, remove)
            found[where].append(item)

    act = remove_if_expired(grace_seconds)
    leftovers = list(directory.leftovers())  # before this run adds leftovers of its own
    for lookup in list(directory.read_all()):
        reason = removal_reason(lookup, directory.clock.now(), grace_seconds)
        handle(lookup, reason, lambda lookup=lookup: directory.change(lookup.agent_id, act))  # type: ignore[misc]
    for lookup in leftovers:
        handle(lookup, lookup.reason, lambda lookup=lookup: directory.discard(lookup))  # type: ignore[misc]
    lists = {name: tuple(items) for name, items in found.items()}
    return CleanupReport(root=directory.address, dry_run=dry_run, grace_seconds=grace_seconds, **lists)


def _try_remove(lookup: Lookup, reason: str, remove: Callable[[], AgentRecord | None]) -> tuple[str, CleanupItem]:
    try:
        kept_record = remove()
    except (MamError, OSError) as error:
        return "failed", _item(lookup, f"{reason}; it could not be removed: {error}")
    if kept_record is not None:
        return "kept", _item(lookup, "it was published again meanwhile")
    return "applied", _item(lookup, reason)


def _item(lookup: Lookup, reason: str) -> CleanupItem:
    return CleanupItem(agent_id=lookup.agent_id, path=lookup.path, reason=reason)


def _keep_reason(lookup: Lookup, now: Moment) -> str:
    if lookup.kind == NEWER:
        return f"it was written by a newer program ({lookup.reason})"
    resolution = resolve_lookup(lookup, now)
    if resolution.kind == LIVE and lookup.record is not None and lookup.record.liveness is not None:
        return f"its lease is valid until {lookup.record.liveness.lease_expires_at}"
    return resolution.reason
