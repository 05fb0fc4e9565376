"""`mam.json`: mam's own facts about a session, beside its record.

The record keeps the form that the other system requires, whose strict reader accepts no other field. The file holds the
facts of the last two generations, because it is written before the record: after a kill between the two, the old record
still finds its own.
"""

from __future__ import annotations

from mam.agents.record import MamGroup
from mam.agents.record_parser import Invalid, parse_mam_group
from mam.util.encoding import to_bytes
from mam.util.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import AgentRecord

    Groups = dict[str, MamGroup]
    """By generation."""


def parse_groups(data: bytes) -> Groups:
    """Nothing for a file that is not mam's: without these facts, mam controls no session."""
    try:
        value = strict_json(data)
        groups = value["generations"] if isinstance(value, dict) else {}
        return {generation: parse_mam_group(group) for generation, group in groups.items()}
    except (ValueError, KeyError, AttributeError, TypeError, Invalid):
        return {}


def encode_groups(new: AgentRecord, old: AgentRecord | None) -> bytes:
    records = [new] if old is None or old.generation_id == new.generation_id else [old, new]
    return to_bytes({"generations": {record.generation_id: record.mam.to_json() for record in records}}) + b"\n"


def with_group(record: AgentRecord, groups: Groups) -> AgentRecord:
    """The record with mam's facts. If the other system has written a new generation, the earlier ones are replaced."""
    if record.mam != MamGroup():
        return record  # an older mam wrote them into the record
    own = groups.get(record.generation_id)
    if own is not None:
        return record.replace(mam=own)
    replaced = [*(name for group in groups.values() for name in group.superseded), *groups]
    stores = [store for group in groups.values() for store in group.stores]
    return record.replace(
        mam=MamGroup(
            superseded=tuple(name for name in dict.fromkeys(replaced) if name != record.generation_id),
            stores=tuple(dict.fromkeys(stores)),
        )
    )
