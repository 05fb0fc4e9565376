"""Announce a new generation of a session to the stores that earlier generations claimed from.

Before a session claims from a store, its record names that store. A later generation announces itself to every named
store, so that the jobs of its predecessor need not wait until their leases expire.
"""

from __future__ import annotations

from mam.agents import acts
from mam.agents.errors import NewerRecord, NotPublished
from mam.errors import MamError
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord
    from mam.config.settings import Config
    from mam.location.stores import StoreLocation


class Announcement(Frozen):
    """The result of announcing a generation to one store."""

    store: str
    moved: tuple[str, ...] = ()
    """Jobs of an older generation that can be claimed again."""
    problem: str | None = None
    """Why the announcement failed."""


def note_store(directory: Directory, agent_id: str, generation_id: str, store: str) -> str | None:
    """Add the store to the record. Returns why that was not possible, or None. Raises GenerationLost for a replaced
    generation."""
    try:
        directory.change(agent_id, acts.add_store(generation_id, store))
    except (NotPublished, NewerRecord) as error:
        return str(error)
    return None


def announce_in_stores(record: AgentRecord, config: Config, here: StoreLocation | None) -> list[Announcement]:
    """Announce the generation to every store that the session has claimed from. `here` is the store of this command:
    its address may contain a password, which the record never does."""
    return [_announce_in(store, record, config, here) for store in record.mam.stores]


def _announce_in(store: str, record: AgentRecord, config: Config, here: StoreLocation | None) -> Announcement:
    from mam.location.stores import locate, open_located

    try:
        located = here if here is not None and here.shown == store else locate(store, None, config)
        registry = open_located(located, config)
        try:
            moved = registry.announce(record.agent_id, record.generation_id)
        finally:
            registry.store.close()
    except MamError as error:
        return Announcement(store=store, problem=str(error))
    return Announcement(store=store, moved=tuple(job.job_id for job in moved))
