"""Upgrades a schema of mam 0.1.0, in the transaction that creates the new schema.

Jobs, events, archive, secrets, pauses, sessions and the directory are kept. The journal gets new numbers and a new id,
so followers start over; positions of relays are dropped.
"""

from __future__ import annotations

import json

from mam.errors import BadRecord, StoreUnavailable
from mam.jobs.record import parse_job
from mam.stores.postgres.client import QUERIES
from mam.stores.postgres.connection import text
from mam.stores.sql.queries import load_queries
from mam.stores.sql.rows import column_values
from mam.util.clock import Moment
from mam.util.encoding import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.jobs.record import Job
    from mam.stores.postgres.connection import Connection, Server

PAGE = 1000
_OLD = load_queries(__file__, "upgrade.sql")
_ANY_BOOT = Moment(wall_ms=0)
"""Leases go by the wall clock."""


def upgrade(server: Server, connection: Connection, schema: str) -> None:
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.execute(text(_OLD["rename old tables"]))
    connection.execute(text(schema))
    with connection.cursor() as cursor:
        for page in _pages(connection, "old jobs"):
            rows = []
            for _number, record, prompt, root, awaited, is_set_aside in page:
                job = _job(server, record, prompt)
                rows.append({**column_values(job, _ANY_BOOT), "root": root, "awaited": awaited, "prompt": prompt})
                if is_set_aside:
                    rows[-1]["blocked"] = 2
            cursor.executemany(text(QUERIES["insert job"]), rows)
        for page in _pages(connection, "old archive"):
            rows = []
            for _number, record, prompt, events, root in page:
                job = _job(server, record, prompt)
                names = {"job_id": job.job_id, "number": job.number, "key": job.key, "retry_of": job.retry_of}
                names["continues"] = None
                whole = to_bytes(job.to_json()).decode()
                rows.append({**names, "root": root, "record": whole, "events": events})
            cursor.executemany(text(QUERIES["insert archived"]), rows)
    connection.execute(text(_OLD["copy journal"]))
    connection.execute(text(_OLD["copy other tables"]))
    for (key,) in connection.execute(text(_OLD["pending keys"])).fetchall():
        connection.execute(text(QUERIES["block key"]), {"key": key})
        connection.execute(text(QUERIES["unblock heads"]), {"key": key})


def _pages(connection: Connection, query: str) -> Iterator[list[tuple[Any, ...]]]:
    after = -1
    while page := connection.execute(text(_OLD[query]), {"after": after, "limit": PAGE}).fetchall():
        yield page
        after = page[-1][0]


def _job(server: Server, record: str, prompt: str) -> Job:
    """A row that mam cannot read has to be repaired first: its fields would not fit into the columns."""
    try:
        return parse_job({**json.loads(record), "prompt": prompt}, "")
    except (BadRecord, TypeError, ValueError, RecursionError) as bad:
        problem = bad.facts["problem"] if isinstance(bad, BadRecord) else "no JSON object"
        what = f"the record that begins with {record[:60]!r} cannot be read ({problem})"
        why = f"{what}; repair or delete it, then `mam init` again"
        raise StoreUnavailable(store=server.address, problem=why) from None
