"""JSON for the ends of jobs, by orjson, which takes a quarter of the time for a record. Its import is nothing beside
psycopg's, and much beside a command on SQLite: there only a process that has ended many jobs loads this.
"""

from __future__ import annotations

from orjson import dumps

from mam.writing import as_text


def quick_text(value: object) -> str:
    """The same JSON as `as_text`. What orjson does not write, such as a number of more than 64 bits, is left to that.
    NaN would become null here, but whoever tells an event has looked that there is none (`check_data`)."""
    try:
        return dumps(value).decode()
    except TypeError:
        return as_text(value)
