"""One trip to the server and back, without what a general driver does for every statement: that takes longer than the
server's own work.

The server takes all that is sent up to a sync point for one transaction, so an act needs no statement to begin or to
commit it: questions are flushed and answered, and what is written goes last, together with the sync point.
"""

from __future__ import annotations

import select
from _operator import itemgetter

from psycopg import DataError, Error, OperationalError, errors
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from psycopg.pq.abc import PGconn, PGresult

    from mam.stores.postgres.connection import Connection

    Sent = tuple["Statement", dict[str, Any]]

_NUMBERS = (20, 23)
"""The types whose values are not text here: bigint, integer."""
_BOOLEAN = 16
_WELL = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_SYNCED = int(ExecStatus.PIPELINE_SYNC)


class Statement:
    """A named query as the server wants it: `%(name)s` becomes the number of a parameter."""

    __slots__ = ("_chosen", "kinds", "name", "text")

    def __init__(self, name: str, query: str) -> None:
        self.name = name.replace(" ", "_").encode()
        parameters: list[str] = []
        first, *rest = query.split("%(")
        for part in rest:
            parameter, _, behind = part.partition(")s")
            if parameter not in parameters:
                parameters.append(parameter)
            first += f"${parameters.index(parameter) + 1}{behind}"
        self.text = first
        self._chosen = itemgetter(*parameters) if len(parameters) > 1 else _chosen_from(parameters)
        self.kinds: list[int] = []
        """The types of the columns, once the server has answered."""

    def bound(self, values: dict[str, Any]) -> list[bytes | None]:
        bound = [
            value.encode() if type(value) is str else None if value is None else str(value).encode()
            for value in self._chosen(values)
        ]
        if b"\0" in b"".join(filter(None, bound)):
            raise DataError("PostgreSQL text cannot contain NUL")  # it would be cut off there without a word
        return bound


def _chosen_from(parameters: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Where there are few of them."""
    return lambda values: [values[name] for name in parameters]


class Wire:
    """One connection, whose server remembers what was prepared."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._server: PGconn = connection.pgconn
        self.process = self._server.backend_pid
        """Of the server, that works for this connection."""
        self._prepared: set[bytes] = set()
        self._readable, self._usable = select.poll(), select.poll()
        self._readable.register(self._server.socket, select.POLLIN)
        self._usable.register(self._server.socket, select.POLLIN | select.POLLOUT)
        self._server.enter_pipeline_mode()

    @property
    def closed(self) -> bool:
        return self._server.status != ConnStatus.OK

    def close(self) -> None:
        self._connection.close()

    def trip(self, sent: Sequence[Sent], *, ends: bool) -> list[Any]:
        """Sends statements and waits for the answers; the rows of the last that has any to give. With `ends`, all that
        was sent since the last end is done and durable when this returns; when the server refuses, none of it is."""
        try:
            unread: list[bytes | Statement] = []
            for statement, values in sent:
                self._send(statement, values, unread)
            if ends:
                self._server.pipeline_sync()
            else:
                self._server.send_flush_request()
            self._flush()
            rows = self._answers(unread)
        except Error:
            if not self.closed:
                self._skip(synced=ends)
            raise
        except BaseException:
            self.close()  # somebody has interrupted it in the middle of something
            raise
        if ends:
            self._end()
        return rows

    def undo(self, *, written: bool) -> None:
        """Nothing that was sent since the last end happens. Questions alone leave nothing to take back."""
        try:
            if written:
                self._server.send_query_params(b"ROLLBACK", None)
            self._skip(synced=False)
        except Error:
            self.close()

    def _send(self, statement: Statement, values: dict[str, Any], unread: list[bytes | Statement]) -> None:
        """Adds what will be answered: the name of a statement that is prepared, the statement itself for its rows."""
        name, bound = statement.name, statement.bound(values)
        if name not in self._prepared:
            self._server.send_prepare(name, statement.text.encode())
            self._prepared.add(name)
            unread.append(name)
        self._server.send_query_prepared(name, bound)
        unread.append(statement)

    def _answers(self, unread: list[bytes | Statement]) -> list[Any]:
        """The rows of the last that has columns. The first that failed is what went wrong."""
        answer: tuple[PGresult, Statement] | None = None
        is_busy, get_result = self._server.is_busy, self._server.get_result
        for place, step in enumerate(unread):
            if is_busy():
                self._await_answer()
            result = get_result()
            if result is None or result.status not in _WELL:
                # The server skips what is behind a failure.
                self._prepared.difference_update(name for name in unread[place:] if isinstance(name, bytes))
                raise self._failure(result)
            if is_busy():
                self._await_answer()
            if get_result() is not None:
                raise OperationalError("the server said more than it was asked")
            if result.nfields and isinstance(step, Statement):
                answer = result, step
        return [] if answer is None else _rows(*answer)

    def _end(self) -> None:
        try:
            failed = self._to_sync_point()
        except BaseException:
            self.close()  # nobody knows where it stands
            raise
        if failed is not None:
            raise self._failure(failed)

    def _skip(self, *, synced: bool) -> None:
        """After a failure: past all that is unread, to where the server listens again."""
        try:
            if not synced:
                self._server.pipeline_sync()
                self._flush()
            self._to_sync_point()
        except Error:
            self.close()

    def _to_sync_point(self) -> PGresult | None:
        """The failure that was met on the way, if any."""
        failed: PGresult | None = None
        silent = 0
        while (result := self._next()) is None or result.status != _SYNCED:
            silent = silent + 1 if result is None else 0
            if self.closed or silent > 1:
                raise self._failure(result)
            if result is not None and result.status == ExecStatus.FATAL_ERROR:
                failed = failed or result
        return failed

    def _failure(self, result: PGresult | None) -> Error:
        if result is None or self.closed or not result.error_field(DiagnosticField.SQLSTATE):  # which servers give
            said = "" if result is None else result.error_message.decode(errors="replace").strip()
            return OperationalError(said or "the connection was lost")
        return errors.error_from_result(result)

    def _flush(self) -> None:
        """Reads while it writes: a server whose answers nobody takes would stop listening."""
        while self._server.flush():
            self._usable.poll()
            self._server.consume_input()

    def _next(self) -> PGresult | None:
        if self._server.is_busy():
            self._await_answer()
        return self._server.get_result()

    def _await_answer(self) -> None:
        while self._server.is_busy():
            self._readable.poll()
            self._server.consume_input()


def _rows(result: PGresult, statement: Statement) -> list[Any]:
    if not statement.kinds:
        statement.kinds = [result.ftype(column) for column in range(result.nfields)]
    rows = []
    for row in range(result.ntuples):
        values: list[Any] = []
        for column, kind in enumerate(statement.kinds):
            value = result.get_value(row, column)
            if value is None:
                values.append(None)
            elif kind in _NUMBERS:
                values.append(int(value))
            else:
                values.append(value == b"t" if kind == _BOOLEAN else value.decode())
        rows.append(values)
    return rows
