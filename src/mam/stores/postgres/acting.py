"""One act on the server: two trips, to ask and to write; begun again when it came to nothing, and never done twice."""

from __future__ import annotations

import os
import time
from _thread import RLock

import psycopg
from psycopg import errors

from mam.errors import MamError
from mam.stores.postgres.connection import Server
from mam.stores.postgres.line import NO, SURELY, moves_line
from mam.stores.postgres.wire import Statement, Wire
from mam.stores.sql.queries import load_queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from mam.stores.postgres.wire import Sent

    T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long a verb tries to get through to a server that was there before."""

_PAUSE = 0.1
_QUERIES = load_queries(__file__)
_PARTS = {f"{{{name}}}": _QUERIES[name] for name in ("news", "blocked", "clear")}
"""Of queries, where their names stand in braces."""
_ANYWHERE = {**_PARTS, "{from}": ""}
_IN_LINE = {**_PARTS, "{from}": _QUERIES["from the line"], "{clear}": _QUERIES["same line"]}


def _statement(name: str, query: str, parts: dict[str, str]) -> Statement:
    for place, part in parts.items():
        query = query.replace(place, part)
    return Statement(name, query)


STATEMENTS = {
    **{name: _statement(name, query, _ANYWHERE) for name, query in _QUERIES.items()},
    "claim in line": _statement("claim in line", _QUERIES["claim fresh"], _IN_LINE),
}
_AGAIN = (errors.UniqueViolation, errors.SerializationFailure, errors.DeadlockDetected)
"""Somebody else was quicker; asked again, the act sees what they did."""
_HOLDING = frozenset(
    ("job to change", "jobs to change", "place", "lock roots", "ready", "first pending", "first of others",
     "this pending", "due", "look")
)  # fmt: skip
"""What these answer ends with the id of the transaction, if they hold anything."""


def bound_to(query: str, values: dict[str, Any]) -> Sent:
    """A named query, ready to be sent."""
    statement = STATEMENTS[query]
    return statement, statement.bound(values)


class AnswerLost(Exception):
    """An act may have happened or not; the process of the server that was told to do it may even be at it still."""

    def __init__(self, process: int) -> None:
        super().__init__()
        self.process = process


class Acting:
    """The connection of a store. Threads share it; a fork makes its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._threads = RLock()
        self._process = os.getpid()
        self._wire: Wire | None = Wire(server.connect())
        self._in_act = False
        self._unsent: list[Sent] = []
        """What the act under way has written; it goes to the server before the next question, or at the end."""
        self._asked = self._wrote = False
        self._xact: str | None = None
        """The transaction that is open, once it holds something."""
        self.last_xact: str | None = None
        """One that is durable: whatever comes later has a higher number."""
        self._written: dict[str, str] | None = None
        """The last entry of the transaction that is open, by which it can be recognised."""
        self._moves = NO
        """Whether the transaction moves the line."""
        self._inherited: tuple[Any, ...] = ()

    def act(self, do: Callable[..., T], *given: Any) -> T:
        """A connection that is lost before the end loses nothing, so the act is done again from the beginning. One that
        is lost at the end leaves a question, and the server is asked what became of the transaction."""
        self._notice_fork()
        ends = time.monotonic() + PATIENCE_SECONDS
        with self._threads:
            while True:
                self._begin()
                try:
                    done = do(*given)
                except psycopg.Error as error:
                    self._undo()
                    self._pause_or_give_up(error, ends)
                    continue
                except BaseException:
                    self._undo()
                    raise
                if self._committed(ends):
                    return done

    def rows(self, query: str, values: dict[str, Any]) -> list[Any]:
        """Inside an act a failure is the act's; a reader simply asks again."""
        self._notice_fork()
        with self._threads:  # else another thread's act would be taken for ours
            if not self._in_act:
                return self._read(query, values)
            self._moves = max(self._moves, moves_line(query, values))
            unsent, self._unsent = self._unsent, []
            self._wrote = self._wrote or bool(unsent)
            rows = self._trip([*unsent, bound_to(query, values)], ends=False)
            if query in _HOLDING and rows:
                self._xact = rows[-1][-1] or self._xact
                return [row[:-1] for row in rows]
            return rows

    def run(self, query: str, values: dict[str, Any]) -> None:
        """What an act writes waits for its next question or its end."""
        self._moves = max(self._moves, moves_line(query, values))
        self._unsent.append(bound_to(query, values))
        if "lines" in values and self._xact is not None:
            self._written = {"xact": self._xact, "job_id": values["job_id"], "lines": values["lines"]}

    def at_once(self, sent: Sent) -> Any | None:
        """A whole act in one trip; the row that it answers. None when it came to nothing; AnswerLost when nobody
        knows."""
        if self._process != os.getpid():
            self._notice_fork()
        with self._threads:
            self._in_act, self._asked = True, False
            try:
                rows = self._trip((sent,), ends=True)
            except psycopg.Error:
                if self._is_lost():
                    raise AnswerLost(0 if self._wire is None else self._wire.process) from None
                return None
            finally:
                self._in_act = False
            return rows[0] if rows else None

    def end_conversation(self, process: int) -> None:
        """Returns when a process of the server whose answer was lost can do nothing more."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while self.rows("end conversation", {"process": process}):
            self._pause_or_give_up(psycopg.OperationalError("a lost connection does not end"), ends)

    def _is_lost(self) -> bool:
        return self._wire is None or self._wire.closed

    def close(self) -> None:
        self._notice_fork()
        with self._threads:
            if self._wire is not None:
                self._wire.close()
            self._wire = None

    def _notice_fork(self) -> None:
        """A child must not use its parent's connection, nor close it, nor wait for a thread that stayed there."""
        if self._process != os.getpid():
            self._inherited = (*self._inherited, self._wire)
            self._wire, self._in_act = None, False
            self._threads = RLock()
            self._process = os.getpid()

    def reconnected(self) -> psycopg.Connection[Any]:
        """A server that was there before may be starting again."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._server.connect()
            except MamError:
                if time.monotonic() >= ends:
                    raise
                time.sleep(_PAUSE)

    def line_of(self, label: str) -> Any | None:
        """Where it begins, if that can be known (mam.stores.postgres.line). In one trip: whoever is stopped meanwhile
        keeps nobody from registering."""
        self._notice_fork()
        with self._threads:
            try:
                look = bound_to("line", {"label": label})
                rows = self._trip([bound_to("nobody registers", {}), look], ends=True)
            except psycopg.Error:
                return None
            return rows[0] if rows else None

    # -- one transaction -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._in_act, self._asked, self._wrote = True, False, False
        self._unsent, self._xact, self._written, self._moves = [], None, None, NO

    def _committed(self, ends: float) -> bool:
        """Whether the act has happened; False when it has to be done again."""
        unsent, self._unsent = self._unsent, []
        if self._moves != NO:
            unsent.append(bound_to("move line", {"surely": self._moves == SURELY}))
        try:
            if unsent or self._asked:
                self._trip(unsent, ends=True)
        except psycopg.Error as error:
            self._in_act = False
            if self._is_lost() and (self._written is None or self._has_happened(self._written, ends, error)):
                return True  # nothing was written, or it is there
            self._pause_or_give_up(error, ends)
            return False
        finally:
            self._in_act = False
        self.last_xact = self._xact or self.last_xact
        return True

    def _has_happened(self, written: dict[str, str], ends: float, error: psycopg.Error) -> bool:
        """The server is asked what became of a commit that it did not answer."""
        while True:
            try:
                status = str(self._trip([bound_to("outcome", written)], ends=True)[0][0])
                if status == "committed":
                    return bool(self._trip([bound_to("is ours", written)], ends=True)[0][0])
            except errors.InvalidParameterValue:
                return False  # the server crashed and has forgotten that number: it was never on its disk
            except psycopg.OperationalError as again:
                self._pause_or_give_up(again, ends)
                continue
            if status != "in progress":
                return False
            self._pause_or_give_up(error, ends)

    def _undo(self) -> None:
        self._in_act = False
        if self._asked and self._wire is not None and not self._wire.closed:
            self._wire.undo(written=self._wrote)

    def _read(self, query: str, values: dict[str, Any]) -> list[Any]:
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._trip([bound_to(query, values)], ends=True)
            except psycopg.Error as error:
                self._pause_or_give_up(error, ends)

    def _trip(self, sent: Sequence[Sent], *, ends: bool) -> list[Any]:
        """Every word to the server goes through here."""
        if self._wire is None or self._wire.closed:
            if self._asked and self._in_act:
                self._asked = False
                raise psycopg.OperationalError("the connection was lost")
            self._wire = Wire(self.reconnected())
        self._asked = True
        try:
            return self._wire.trip(sent, ends=ends)
        except psycopg.Error:
            self._asked = False  # the server has undone it by itself
            raise

    def _pause_or_give_up(self, error: psycopg.Error, ends: float) -> None:
        lost = self._is_lost() or isinstance(error, psycopg.OperationalError)
        if not isinstance(error, _AGAIN) and not lost:
            raise self._server.unavailable(error) from None
        if isinstance(error, errors.QueryCanceled) or time.monotonic() >= ends:
            raise self._server.unavailable(error) from None
        if not isinstance(error, _AGAIN):
            time.sleep(_PAUSE)
