"""Whose the schema is that has mam's name: a server says of another program's, and of one that this role may not use,
what it says where there is none."""

from __future__ import annotations

from mam.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.postgres.connection import Connection, Server

SCHEMA = "mam"
NOBODYS, ANOTHERS, CLOSED, OURS = "nobody's", "another's", "closed", "ours"

_COLUMNS = {"store.version", "store.journal_id", "job.job_id", "journal.job_id"}
"""By these it is known for mam's, of whatever version."""

# The catalog is open to every role, also what it says of schemas that are not.
_LOOK = """
SELECT has_schema_privilege(n.oid, 'USAGE'), ARRAY(
    SELECT c.relname || '.' || coalesce(a.attname, '') FROM pg_class c
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = n.oid
)
FROM pg_namespace n WHERE n.nspname = %s
"""


def whose_schema(connection: Connection) -> str:
    rows = connection.execute(_LOOK, (SCHEMA,)).fetchall()
    if not rows or not rows[0][1]:
        return NOBODYS
    may_use, columns = rows[0]
    if not _COLUMNS.issubset(columns):
        return ANOTHERS
    return OURS if may_use else CLOSED


def foreign(server: Server) -> StoreUnavailable:
    return StoreUnavailable(store=server.address, problem=f"its schema `{SCHEMA}` belongs to another program")


def closed(server: Server) -> StoreUnavailable:
    problem = f"its schema `{SCHEMA}` is there, but {server.role} may not use it"
    return StoreUnavailable(store=server.address, problem=f"{problem}; its owner grants that (docs/stores.md)")
