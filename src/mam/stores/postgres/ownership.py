"""Finds out whether the schema `mam` is missing, belongs to another program, or may not be used by this role: the
errors of the server are the same in all three cases. Also finds tables of mam in other schemas."""

from __future__ import annotations

from mam.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.postgres.connection import Connection, Server

SCHEMA = "mam"
MISSING, FOREIGN, CLOSED, OURS = "missing", "foreign", "closed", "ours"

_COLUMNS = {"store.version", "store.journal_id", "job.job_id", "journal.job_id"}
"""Columns that every version of mam's schema has."""

# Every role may read the catalog, also about schemas that it may not use.
_INSPECT = """
SELECT has_schema_privilege(n.oid, 'USAGE'), ARRAY(
    SELECT c.relname || '.' || coalesce(a.attname, '') FROM pg_class c
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = n.oid
)
FROM pg_namespace n WHERE n.nspname = %s
"""

# A pooler that drops start-up settings made earlier versions of mam create their tables in `public`.
_ELSEWHERE = """
SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname <> %s AND c.relname || '.' || a.attname = ANY (%s)
GROUP BY n.nspname HAVING count(*) = %s ORDER BY n.nspname
"""


def stores_elsewhere(connection: Connection) -> list[str]:
    """Other schemas of this database that hold a store of mam."""
    wanted = sorted(_COLUMNS)
    return [name for (name,) in connection.execute(_ELSEWHERE, (SCHEMA, wanted, len(wanted))).fetchall()]


def schema_owner(connection: Connection) -> str:
    rows = connection.execute(_INSPECT, (SCHEMA,)).fetchall()
    if not rows or not rows[0][1]:
        return MISSING
    may_use, columns = rows[0]
    if not _COLUMNS.issubset(columns):
        return FOREIGN
    return OURS if may_use else CLOSED


def foreign(server: Server) -> StoreUnavailable:
    return StoreUnavailable(store=server.address, problem=f"its schema `{SCHEMA}` belongs to another program")


def elsewhere(server: Server, schemas: list[str]) -> StoreUnavailable:
    """A second store beside the one in use would split the jobs between them."""
    first = '"' + schemas[0].replace('"', '""') + '"'
    problem = (
        f"this database has a store of mam in its schema {first}, and mam uses only the schema `{SCHEMA}`;"
        f" stop its programs and rename it (ALTER SCHEMA {first} RENAME TO {SCHEMA}), or use another database"
    )
    return StoreUnavailable(store=server.address, problem=problem)


def closed(server: Server) -> StoreUnavailable:
    problem = f"its schema `{SCHEMA}` is there, but {server.role} may not use it"
    return StoreUnavailable(store=server.address, problem=f"{problem}; its owner grants that (docs/stores.md)")
