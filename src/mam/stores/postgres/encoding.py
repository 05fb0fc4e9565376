"""The ends of jobs in JSON by orjson: it takes a quarter of the time, and its import is nothing beside psycopg's."""

from __future__ import annotations

from orjson import dumps

from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.change import Change
    from mam.stores.sql.rows import Row


def ended_bytes(row: Row, change: Change) -> tuple[bytes, bytes, bytes]:
    """`Row.ended`, the same JSON as by `to_bytes`, which writes what orjson refuses: numbers of more than 64 bits. NaN
    would become null here, but whoever tells an event has looked that there is none."""
    try:
        return row.ended(change, dumps)
    except TypeError:
        return row.ended(change, to_bytes)
