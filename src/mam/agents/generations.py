"""What the directory and the job stores know of each other: where a session has claimed, and which life of it counts.

Before a session claims from a store, its record names that store. A later generation visits all that are named, so that
the jobs of its predecessor do not wait for a lease to run out.
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
    """What became of telling one store."""

    store: str
    moved: tuple[str, ...] = ()
    """Jobs of an older generation that may be claimed again."""
    problem: str | None = None
    """Why it could not be told."""


def note_store(directory: Directory, agent_id: str, generation_id: str, store: str) -> str | None:
    """Writes it into the record; why that was not possible, if it was not. A generation that was replaced is refused:
    GenerationLost."""
    try:
        directory.change(agent_id, acts.add_store(generation_id, store))
    except (NotPublished, NewerRecord) as error:
        return str(error)
    return None


def announce_in_stores(record: AgentRecord, config: Config, here: StoreLocation | None) -> list[Announcement]:
    """Tells every store that the session, or one before it, has claimed from. `here` is the store of this command: its
    address may hold a password, which the record never does."""
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
