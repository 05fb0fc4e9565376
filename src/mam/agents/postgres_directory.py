"""The session directory in PostgreSQL: many hosts, one clock, one transaction for each act."""

from __future__ import annotations

import psycopg

from mam.agents.errors import BadName
from mam.agents.lookup import FOUND, INVALID, MALFORMED, MISSING, NEWER, Lookup
from mam.agents.names import bare_name, is_agent_id
from mam.agents.record_parser import Invalid, Malformed, Newer, parse_record
from mam.stores.postgres.connection import Server
from mam.stores.postgres.schema import check_not_newer
from mam.util.clock import Moment, SystemClock, parse_time
from mam.util.encoding import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.agents.acts import Act
    from mam.agents.record import AgentRecord
    from mam.stores.postgres.connection import Connection
    from mam.util.clock import Clock

ASIDE = "put_aside:"
"""Precedes the id of a row that was not a valid record; no id contains a colon."""

_SPACE = 0x6D616D61
"""Separates these advisory locks from those of the job store."""

_VERSION = "SELECT abs(version) FROM mam.store"
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
# A new id has no row to lock, so the lock is on the id itself.
_HOLD = "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))"
_ONE = "SELECT agent_id, record FROM mam.agent_record WHERE agent_id = %s"
_ALL = "SELECT agent_id, record FROM mam.agent_record WHERE agent_id NOT LIKE 'put\\_aside:%' ORDER BY agent_id"
_ASIDE = "SELECT agent_id, record FROM mam.agent_record WHERE agent_id LIKE 'put\\_aside:%' ORDER BY agent_id"
_PUT_ASIDE = "UPDATE mam.agent_record SET agent_id = %s WHERE agent_id = %s"
_DELETE = "DELETE FROM mam.agent_record WHERE agent_id = %s"
_WRITE = """
INSERT INTO mam.agent_record (agent_id, generation_id, name, record, lease_expires_ms) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (agent_id) DO UPDATE SET generation_id = excluded.generation_id, name = excluded.name,
    record = excluded.record, lease_expires_ms = excluded.lease_expires_ms
"""


class ServerClock:
    """Uses the server's time for every lease, so that clock differences between hosts do not matter."""

    def __init__(self, directory: PostgresDirectory) -> None:
        self._directory = directory
        self._local = SystemClock()

    def now(self) -> Moment:
        return Moment(wall_ms=int(self._directory.query(_NOW)[0][0]))

    def new_id(self) -> str:
        return self._local.new_id()

    def chance(self) -> float:
        return self._local.chance()


class PostgresDirectory:
    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self._server = Server(url)
        self.opener = url
        self.address = self._server.address
        self.clock: Clock = clock or ServerClock(self)
        self._connection: Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def read(self, agent_id: str) -> Lookup:
        if not is_agent_id(agent_id):
            return Lookup(agent_id=agent_id, kind=MISSING, reason=f"{agent_id[:80]!r} is not an id")
        return self._look(agent_id)

    def read_all(self) -> Iterator[Lookup]:
        for agent_id, record in self.query(_ALL):
            yield self._parse_row(agent_id, record)

    def leftovers(self) -> Iterator[Lookup]:
        for agent_id, _ in self.query(_ASIDE):
            yield Lookup(agent_id=agent_id, kind=MALFORMED, reason="set aside", path=self._path(agent_id))

    def discard(self, leftover: Lookup) -> None:
        self.query(_DELETE, leftover.agent_id)

    def change(self, agent_id: str, act: Act) -> AgentRecord | None:
        if not agent_id or "\0" in agent_id:
            raise BadName(name=repr(agent_id[:80]), why="PostgreSQL cannot store it")
        try:
            with self._connected().transaction():
                self.query(_HOLD, agent_id, _SPACE)
                lookup = self._look(agent_id)
                wanted = act(lookup, self.clock.now())
                if wanted is None:
                    self.query(_DELETE, agent_id)
                elif wanted is not lookup.record:
                    self._write(lookup, wanted)
                return wanted
        except psycopg.Error as error:
            raise self._server.unavailable(error) from None

    def _write(self, lookup: Lookup, record: AgentRecord) -> None:
        if lookup.record is None and lookup.kind != MISSING:
            self.query(_PUT_ASIDE, f"{ASIDE}{lookup.agent_id}:{self.clock.new_id()[:12]}", lookup.agent_id)
        expires = 0 if record.liveness is None else parse_time(record.liveness.lease_expires_at)
        text = to_bytes(record.to_json()).decode()
        self.query(_WRITE, record.agent_id, record.generation_id, bare_name(record.agent_name), text, expires)

    def _look(self, agent_id: str) -> Lookup:
        rows = self.query(_ONE, agent_id)
        if not rows:
            return Lookup(agent_id=agent_id, kind=MISSING, reason="there is none", path=self._path(agent_id))
        return self._parse_row(*rows[0])

    def _parse_row(self, agent_id: str, text: str) -> Lookup:
        path = self._path(agent_id)
        try:
            record = parse_record(text.encode())
            if record.agent_id != agent_id:
                raise Invalid(f"it is the record of {record.agent_id}, under another id")
        except Newer as error:
            return Lookup(agent_id=agent_id, kind=NEWER, reason=str(error), path=path)
        except Invalid as error:
            return Lookup(agent_id=agent_id, kind=INVALID, reason=f"its record is not valid: {error}", path=path)
        except Malformed as error:
            return Lookup(agent_id=agent_id, kind=MALFORMED, reason=str(error), path=path)
        return Lookup(agent_id=agent_id, kind=FOUND, record=record, path=path)

    def _path(self, agent_id: str) -> str:
        return f"{self.address} agent_record {agent_id}"

    def query(self, query: str, *values: object) -> list[Any]:
        try:
            cursor = self._connected().execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise self._server.unavailable(error) from None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._checked(self._server.connect())
        return self._connection

    def _checked(self, connection: Connection) -> Connection:
        """A newer mam may store records elsewhere, so an empty table would prove nothing."""
        try:
            for (version,) in connection.execute(_VERSION).fetchall():
                check_not_newer(self._server, version)
        except BaseException:
            connection.close()
            raise
        return connection
