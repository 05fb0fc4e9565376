"""The index of a files store: what a claim needs to know of all jobs without opening their files.

SQLite in WAL mode with synchronous=NORMAL: a power cut may take it back in time, never forward, since it is written
after the records it describes are durable; the journal then brings it up to date again.
"""

from __future__ import annotations

import json
import os
from zlib import crc32

try:
    from _sqlite3 import Connection, DatabaseError, connect
except ImportError:  # an interpreter that hides the C module; the public one costs 5 ms more to import
    from sqlite3 import Connection, DatabaseError, connect

from mam.frozen import Frozen
from mam.jobs.status import Status
from mam.jobs.sweep import end_of_wait
from mam.stores.files.journal import Place
from mam.stores.port import Problem
from mam.stores.sql.gate import UNREADABLE, Gate, blocked_at_first
from mam.stores.sql.gate import __file__ as gate_module
from mam.stores.sql.queries import load_queries
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.clock import Moment
    from mam.jobs.record import Job, Json
    from mam.stores.port import Query

    Stamp = tuple[int, int, int]
    """inode, modification time in ns, size: a file that still has these has not been touched."""

__all__ = ["NO_STAMP", "Applied", "DatabaseError", "Index", "Row", "digest"]

_DAMAGE = (1, 8, 11, 26)
"""SQLITE_ERROR (a table is missing), SQLITE_READONLY (its header says so, though the store can be written: the lock was
taken), SQLITE_CORRUPT, SQLITE_NOTADB."""

VERSION = 6
NO_STAMP = (-1, -1, -1)
"""Of a file that has to be looked at, or of something that is no record file."""

_WHAT_IT_IS = (
    "job_id", "number", "label", "agent", "priority", "created_at", "key", "retry_of", "root", "exclusive", "parent",
)  # fmt: skip
_HOW_IT_STANDS = (
    "status", "blocked", "due_ms", "boot_id", "boot_ms", "claimant", "inode", "modified_ns", "size", "state",
)  # fmt: skip
_COLUMNS = ", ".join(_WHAT_IT_IS + _HOW_IT_STANDS)
_INSERT = f"INSERT OR REPLACE INTO job ({_COLUMNS}, bad) VALUES ({'?, ' * _COLUMNS.count(',')}?, 0)"  # noqa: S608
_UPDATE = (
    f"UPDATE job SET {', '.join(f'{name} = ?' for name in _HOW_IT_STANDS)}, bad = 0"  # noqa: S608
    f" WHERE job_id = ? AND {' AND '.join(f'{name} IS ?' for name in _WHAT_IT_IS[1:])}"
)
"""Of a job that is as it was but for how it stands: most of the indexes, and where its row is, then stay as they are,
which is six pages to write instead of fifteen."""


class Applied(Frozen):
    journal_id: str
    place: Place
    next_entry: int
    next_number: int
    directory_ns: int


class Row(Frozen):
    number: int
    stamp: Stamp
    bad: bool
    text: str

    @property
    def state(self) -> dict[str, Any]:
        """Wanted only when somebody else has written the record."""
        state: dict[str, Any] = json.loads(self.text)
        return state


class Index:
    def __init__(self, path: str) -> None:
        self._database = _prepared(path)
        self._gate_queries: dict[str, str] = {}
        self.gate = Gate(self._ask_gate)

    def close(self) -> None:
        self._database.close()

    # -- how far ---------------------------------------------------------------------------------------------------

    def applied(self) -> Applied | None:
        row = self._one("SELECT journal_id, first, byte, next_entry, next_number, directory_ns FROM applied")
        if row is None:
            return None
        return Applied(
            journal_id=row[0],
            place=Place(first=row[1], offset=row[2]),
            next_entry=row[3],
            next_number=row[4],
            directory_ns=row[5],
        )

    def begin(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def commit(self, applied: Applied) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO applied VALUES (1, ?, ?, ?, ?, ?, ?)",
            (
                applied.journal_id,
                applied.place.first,
                applied.place.offset,
                applied.next_entry,
                applied.next_number,
                applied.directory_ns,
            ),
        )
        self._database.execute("COMMIT")

    def roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def clear(self) -> None:
        """Empty, to be filled from the files."""
        self._database.executescript(
            "DELETE FROM job; DELETE FROM dependency; DELETE FROM unsettled; DELETE FROM problem; DELETE FROM applied;"
        )

    # -- one job ---------------------------------------------------------------------------------------------------

    def row(self, job_id: str) -> Row | None:
        found = self._one("SELECT number, inode, modified_ns, size, bad, state FROM job WHERE job_id = ?", job_id)
        if found is None:
            return None
        return Row(number=found[0], stamp=tuple(found[1:4]), bad=bool(found[4]), text=found[5])

    def put(self, job: Job, fields: Json, stamp: Stamp) -> None:
        self.put_state(job, {**fields, "prompt": digest(job.prompt)}, stamp)

    def put_state(self, job: Job, state: Json, stamp: Stamp) -> None:
        end = end_of_wait(job)
        due_ms = end.wall_ms if end else None
        boot_id, boot_ms = (end.boot_id, end.boot_ms) if end and end.boot_id else (None, None)
        root = None if job.retry_of is None else self._root(job.retry_of)
        what_it_is = (
            job.job_id, job.number, job.agent_session, job.agent, job.priority, job.created_at, job.key, job.retry_of,
            root, job.exclusive, job.parent_id,
        )  # fmt: skip
        how_it_stands = (
            job.status.value, blocked_at_first(job), due_ms, boot_id, boot_ms,
            None if job.claimant is None else job.claimant["agent_id"], *stamp, to_bytes(state).decode(),
        )  # fmt: skip
        if not self._database.execute(_UPDATE, how_it_stands + what_it_is).rowcount:
            self._database.execute(_INSERT, what_it_is + how_it_stands)
        self.gate.written(job, root)
        self.forget_problem(f"{job.job_id}.json")

    def remove(self, job_ids: list[str]) -> None:
        for job_id in job_ids:
            row = self._one("SELECT root, exclusive FROM job WHERE job_id = ?", job_id)
            self._database.execute("DELETE FROM job WHERE job_id = ?", (job_id,))
            self.forget_problem(f"{job_id}.json")
            if row is not None:
                self.gate.removed(job_id, *row)

    def weigh_anew(self) -> None:
        """After the rows were put in any order: who holds whom back."""
        for (key,) in self._all("SELECT DISTINCT exclusive FROM job WHERE exclusive IS NOT NULL"):
            self.gate.rebalance(key)
        self._database.execute(
            "INSERT OR REPLACE INTO unsettled (root, ended, upto) SELECT DISTINCT needs, '', 0 FROM dependency"
        )

    def _root(self, job_id: str) -> str:
        return self._text("SELECT root FROM job WHERE job_id = ? AND root IS NOT NULL", job_id) or job_id

    # -- choosing --------------------------------------------------------------------------------------------------

    def first_pending(self, label: str, passed_over: frozenset[str] = frozenset()) -> str | None:
        """The first that is free, of an agent that is not passed over."""
        if passed_over:
            return self._first_of_others(label, passed_over)
        # Without INDEXED BY a planner that has seen statistics may walk the whole table instead.
        return self._text(
            "SELECT job_id FROM job INDEXED BY claim WHERE label = ? AND status = 'pending' AND blocked = 0"
            " ORDER BY priority DESC, number LIMIT 1",
            label,
        )

    def _first_of_others(self, label: str, passed_over: frozenset[str]) -> str | None:
        """Steps from agent to agent, so that ten thousand jobs of a paused one are one step."""
        heads, agent = [], ""
        free = "FROM job INDEXED BY claim_by_agent WHERE label = ? AND status = 'pending' AND blocked = 0"
        while row := self._one(f"SELECT agent {free} AND agent > ? ORDER BY agent LIMIT 1", label, agent):
            agent = row[0]
            if agent not in passed_over:
                first = f"SELECT -priority, number, job_id {free} AND agent = ? ORDER BY priority DESC, number LIMIT 1"
                heads.append(self._one(first, label, agent))
        return min(heads)[2] if heads else None

    def is_free(self, job_id: str) -> bool:
        row = self._one("SELECT 1 FROM job WHERE job_id = ? AND status = 'pending' AND blocked = 0", job_id)
        return row is not None

    def ahead(self, label: str, priority: int, number: int) -> int:
        row = self._one(
            "SELECT count(*) FROM job WHERE label = ? AND status = 'pending' AND bad = 0"
            " AND (priority > ? OR (priority = ? AND number < ?))",
            label, priority, priority, number,
        )  # fmt: skip
        return int(row[0]) if row else 0

    def due(self, moment: Moment, limit: int) -> list[str]:
        """Whose time has come, longest due first, judged by the clock that each of them goes by."""
        overdue = [
            *self._all(
                "SELECT ? - boot_ms, job_id FROM job INDEXED BY due_by_boot"
                " WHERE boot_id = ? AND boot_ms <= ? AND bad = 0 ORDER BY boot_ms LIMIT ?",
                moment.boot_ms, moment.boot_id, moment.boot_ms, limit,
            ),
            *self._all(
                "SELECT ? - due_ms, job_id FROM job INDEXED BY due_by_wall"
                " WHERE due_ms <= ? AND boot_id IS NOT ? AND bad = 0 ORDER BY due_ms LIMIT ?",
                moment.wall_ms, moment.wall_ms, moment.boot_id, limit,
            ),
        ]  # fmt: skip
        return [job_id for _late, job_id in sorted(overdue, reverse=True)[:limit]]

    def due_in_ms(self, moment: Moment) -> int | None:
        rows = [
            self._one(
                "SELECT min(boot_ms) - ? FROM job INDEXED BY due_by_boot WHERE boot_id = ? AND bad = 0",
                moment.boot_ms, moment.boot_id,
            ),
            self._one(
                "SELECT min(due_ms) - ? FROM job INDEXED BY due_by_wall"
                " WHERE due_ms IS NOT NULL AND boot_id IS NOT ? AND bad = 0",
                moment.wall_ms, moment.boot_id,
            ),
        ]  # fmt: skip
        times = [row[0] for row in rows if row is not None and row[0] is not None]
        times += [0 for _unsettled in self._all("SELECT 1 FROM unsettled LIMIT 1")]
        return max(0, min(times)) if times else None

    # -- looking up ------------------------------------------------------------------------------------------------

    def held_by_others(self, agent_id: str, generation_id: str) -> list[str]:
        """The jobs that run for another generation of this agent."""
        held = "SELECT job_id FROM job INDEXED BY by_claimant WHERE claimant = ?"
        others = f"{held} AND json_extract(state, '$.claimant.generation_id') <> ? ORDER BY number"
        return [row[0] for row in self._all(others, agent_id, generation_id)]

    def with_key(self, key: str) -> str | None:
        return self._text("SELECT job_id FROM job WHERE key = ?", key)

    def retry_of(self, job_id: str) -> str | None:
        return self._text("SELECT job_id FROM job WHERE retry_of = ?", job_id)

    def children(self, job_id: str) -> list[str]:
        found = self._all("SELECT job_id FROM job INDEXED BY by_parent WHERE parent = ? ORDER BY number", job_id)
        return [child for (child,) in found]

    def with_prefix(self, prefix: str, limit: int) -> list[str]:
        return [
            row[0]
            for row in self._all(
                "SELECT job_id FROM job WHERE job_id >= ? AND job_id < ? ORDER BY job_id LIMIT ?",
                prefix, prefix + "\U0010ffff", limit,
            )
        ]  # fmt: skip

    def select(self, query: Query) -> list[tuple[str, int]]:
        statuses = query.statuses if query.statuses is not None else frozenset(Status)
        marks = ", ".join("?" * len(statuses))
        return self._all(
            f"SELECT job_id, number FROM job WHERE status IN ({marks}) AND (? IS NULL OR label = ?)"  # noqa: S608
            " AND (? IS NULL OR created_at >= ?) ORDER BY number DESC",
            *(status.value for status in statuses), query.label, query.label, query.since, query.since,
        )  # fmt: skip

    def highest_number(self) -> int:
        return int(self._one("SELECT coalesce(max(number), 0) FROM job")[0])

    def stamps(self) -> Iterator[tuple[str, int, int, int]]:
        return iter(self._all("SELECT job_id, inode, modified_ns, size FROM job"))

    def states(self, after: str, limit: int) -> list[tuple[str, int, str]]:
        """A page of what is known of all jobs that can be read: id, number, state."""
        query = "SELECT job_id, number, state FROM job WHERE job_id > ? AND bad = 0 ORDER BY job_id LIMIT ?"
        return self._all(query, after, limit)

    # -- problems --------------------------------------------------------------------------------------------------

    def note_problem(self, file: str, problem: str, stamp: Stamp) -> None:
        self._database.execute("INSERT OR REPLACE INTO problem VALUES (?, ?, ?, ?, ?)", (file, problem, *stamp))

    def mark_bad(self, job_id: str, problem: str, stamp: Stamp) -> None:
        """Known, but its file cannot be read any more: nobody claims it until it can."""
        self._database.execute("UPDATE job SET bad = 1, blocked = ? WHERE job_id = ?", (UNREADABLE, job_id))
        row = self._one("SELECT exclusive FROM job WHERE job_id = ?", job_id)
        if row is not None and row[0] is not None:
            self.gate.rebalance(row[0])  # another one may be the first now
        self.note_problem(f"{job_id}.json", problem, stamp)

    def forget_problem(self, file: str) -> None:
        self._database.execute("DELETE FROM problem WHERE file = ?", (file,))

    def forget_mended(self, stamp: Stamp) -> None:
        self._database.execute("DELETE FROM problem WHERE (inode, modified_ns, size) = (?, ?, ?)", stamp)

    def problems(self) -> list[tuple[Problem, Stamp]]:
        rows = self._all("SELECT file, problem, inode, modified_ns, size FROM problem ORDER BY file")
        return [(Problem(file=row[0], problem=row[1]), tuple(row[2:])) for row in rows]

    def _ask_gate(self, query: str, **values: object) -> list[Any]:
        if not self._gate_queries:
            self._gate_queries = load_queries(gate_module, "gate.sql")
        return self._database.execute(self._gate_queries[query], values).fetchall()

    def _one(self, query: str, *values: object) -> Any:
        return self._database.execute(query, values).fetchone()

    def _text(self, query: str, *values: object) -> str | None:
        row = self._one(query, *values)
        return None if row is None else str(row[0])

    def _all(self, query: str, *values: object) -> list[Any]:
        return self._database.execute(query, values).fetchall()


def digest(prompt: str) -> str:
    """Stands for a prompt in the index: enough to see that somebody has changed it."""
    return f"{len(prompt)}:{crc32(prompt.encode(errors='surrogatepass')):08x}"


def is_damage(error: DatabaseError) -> bool:
    """Whether the cache itself is at fault, and not the disk under it or somebody who has locked it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def put_aside(path: str) -> None:
    """A cache that cannot be read is not thrown away: somebody may want to know why."""
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.replace(path + suffix, f"{path}.damaged{suffix}")


def _prepared(path: str) -> Connection:
    new = not os.path.exists(path)
    if new:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = connect(path, isolation_level=None, check_same_thread=False)
    try:
        # A short WAL is quickly read by the next process, and every mam command is a next process.
        database.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 100;"
            if new
            else "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 100;"
        )
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            _create(database)
    except BaseException:
        database.close()
        raise
    return database


def _create(database: Connection) -> None:
    with open(os.path.join(os.path.dirname(__file__), "index.sql"), encoding="utf-8") as file:
        schema = file.read()
    old = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    drops = "".join(f'DROP TABLE "{name}";' for name in old if not name.startswith("sqlite_"))
    database.executescript(f"BEGIN IMMEDIATE; {drops} {schema} PRAGMA user_version = {VERSION}; COMMIT;")
