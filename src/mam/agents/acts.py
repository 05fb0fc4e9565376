"""Changes of a session's record. Each act is a pure function from the stored record to the new one.

The directory calls an act under its lock or inside its transaction. Reading and replacing are therefore atomic, and one
of several concurrent generations wins.
"""

from __future__ import annotations

from mam.agents.errors import GenerationConflict, LeaseInThePast, NewerRecord, NotPublished
from mam.agents.lease import DEFAULT_SECONDS, is_fresh, is_removable, length_seconds, with_lease
from mam.agents.lookup import NEWER
from mam.agents.record import RETIRED, STOPPED
from mam.errors import GenerationLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.lookup import Lookup
    from mam.agents.record import AgentRecord
    from mam.util.clock import Moment

    Act = Callable[[Lookup, Moment], AgentRecord | None]
    """Returns the record to store, or None to remove it. Returning the stored record itself changes nothing."""

MAX_SUPERSEDED = 64
"""How many replaced generations a record keeps."""


def publish(record: AgentRecord, lease_seconds: float | None = None) -> Act:
    """Store the record, unless the lease of another generation is still valid.

    Without `lease_seconds` the record keeps the lease that it brings: another program has written it.
    """

    def act(lookup: Lookup, now: Moment) -> AgentRecord:
        new = record
        if record.live and (lease_seconds is not None or record.liveness is None):
            new = with_lease(record, DEFAULT_SECONDS if lease_seconds is None else lease_seconds, now)
        if new.live and not is_fresh(new, now):
            assert new.liveness is not None
            raise LeaseInThePast(agent=new.agent_id, expires_at=new.liveness.lease_expires_at)
        if lookup.kind == NEWER:
            raise NewerRecord(agent=new.agent_id, problem=lookup.reason)
        if lookup.record is None:
            return new
        _check_owner(lookup.record, new, now)
        return _as_successor(lookup.record, new)

    return act


def refresh(
    generation_id: str, lease_seconds: float | None = None, change: Callable[[AgentRecord], AgentRecord] | None = None
) -> Act:
    """Renew the lease. An expired lease is renewed too, as long as no other generation owns the record."""

    def act(lookup: Lookup, now: Moment) -> AgentRecord:
        held = require_owned(lookup, generation_id)
        if not held.live:
            raise NotPublished(agent=held.agent_id, why=f"its session is {held.lifecycle.state}")
        changed = held if change is None else change(held)
        return with_lease(changed, length_seconds(held) if lease_seconds is None else lease_seconds, now)

    return act


def add_store(generation_id: str, store: str) -> Act:
    """Add a store (its address without a password) that holds claims of this session. A later generation announces
    itself there."""

    def act(lookup: Lookup, _now: Moment) -> AgentRecord:
        held = require_owned(lookup, generation_id)
        if store in held.mam.stores:
            return held
        return held.replace(mam=held.mam.replace(stores=(*held.mam.stores, store)))

    return act


def remove(generation_id: str) -> Act:
    def act(lookup: Lookup, _now: Moment) -> None:
        require_owned(lookup, generation_id)

    return act


def stop(generation_id: str, reason: str) -> Act:
    """End the session. What a restart needs stays in the record."""

    def act(lookup: Lookup, now: Moment) -> AgentRecord:
        held = require_owned(lookup, generation_id)
        return held if not held.live else end_session(held, STOPPED, reason, now)

    return act


def retire(generation_id: str, reason: str) -> Act:
    def act(lookup: Lookup, now: Moment) -> AgentRecord:
        held = require_owned(lookup, generation_id)
        return held if held.lifecycle.state == RETIRED else end_session(held, RETIRED, reason, now)

    return act


def remove_if_expired(grace_seconds: float) -> Act:
    """Remove the record only if it is still removable when the directory holds its lock."""

    def act(lookup: Lookup, now: Moment) -> AgentRecord | None:
        return None if removal_reason(lookup, now, grace_seconds) else lookup.record

    return act


def removal_reason(lookup: Lookup, now: Moment, grace_seconds: float) -> str | None:
    """Why cleanup removes the entry; None if it stays."""
    if lookup.kind == NEWER:
        return None
    if lookup.record is None:
        return lookup.reason
    if is_removable(lookup.record, now, grace_seconds):
        assert lookup.record.liveness is not None
        return f"expired at {lookup.record.liveness.lease_expires_at}"
    return None


def require_owned(lookup: Lookup, generation_id: str) -> AgentRecord:
    """The record, if this generation owns it."""
    if lookup.kind == NEWER:
        raise NewerRecord(agent=lookup.agent_id, problem=lookup.reason)
    if lookup.record is None:
        raise NotPublished(agent=lookup.agent_id, why=lookup.reason)
    if lookup.record.generation_id != generation_id:
        raise GenerationLost(agent=lookup.agent_id, owner=lookup.record.generation_id, generation=generation_id)
    return lookup.record


def end_session(held: AgentRecord, state: str, reason: str, now: Moment) -> AgentRecord:
    lifecycle = held.lifecycle
    return held.replace(
        lifecycle=lifecycle.replace(
            state=state,
            relaunchable=lifecycle.relaunchable and state != RETIRED,
            state_updated_at=now.second,
            stopped_at=lifecycle.stopped_at or now.second,
            stop_reason=reason,
        ),
        terminal=held.terminal.replace(current_session_name=None),
        liveness=None,
        mam=held.mam.replace(lease_boot=None, companion=None),
        groups={name: group for name, group in held.groups.items() if name != "gateway"},
    )


def _check_owner(held: AgentRecord, new: AgentRecord, now: Moment) -> None:
    if held.generation_id == new.generation_id:
        return
    if is_fresh(held, now):
        assert held.liveness is not None
        raise GenerationConflict(
            agent=held.agent_id,
            owner=held.generation_id,
            until=f" until {held.liveness.lease_expires_at}",
            generation=new.generation_id,
        )
    if new.generation_id in held.mam.superseded:
        # A replaced generation stays replaced, even when its successor has ended.
        raise GenerationConflict(
            agent=held.agent_id, owner=held.generation_id, until=", which replaced it", generation=new.generation_id
        )


def _as_successor(held: AgentRecord, new: AgentRecord) -> AgentRecord:
    replaced = held.mam.superseded
    if held.generation_id != new.generation_id:
        replaced = (*replaced, held.generation_id)[-MAX_SUPERSEDED:]
    stores = tuple(dict.fromkeys((*held.mam.stores, *new.mam.stores)))
    return new.replace(mam=new.mam.replace(superseded=replaced, stores=stores))
