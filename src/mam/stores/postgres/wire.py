"""One trip to the server and back, without what a general driver does for every statement: that takes longer than the
server's own work.

The server takes all that is sent up to a sync point for one transaction, so an act needs no statement to begin or to
commit it: questions are flushed and answered, and what is written goes last, together with the sync point.
"""

from __future__ import annotations

import select
from _operator import itemgetter

from psycopg import DataError, Error, OperationalError, errors
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from psycopg import abc
    from psycopg.pq.abc import PGconn, PGresult

    from mam.stores.postgres.connection import Connection

    Bound = Sequence[bytes | None]
    Sent = tuple["Statement", Bound]

_WELL = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_SYNCED = int(ExecStatus.PIPELINE_SYNC)
_OPEN = int(ConnStatus.OK)


class Statement:
    """A named query as the server wants it: `%(name)s` becomes the number of a parameter."""

    __slots__ = ("chosen", "name", "parameters", "text")

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
        self.parameters = tuple(parameters)
        self.chosen = itemgetter(*parameters) if len(parameters) > 1 else _chosen_from(parameters)
        """Of values by name, those of the parameters in their order."""

    def bound(self, values: dict[str, Any]) -> Bound:
        chosen = self.chosen(values)
        bound: list[bytes | None]
        try:
            bound = list(map(str.encode, chosen))  # in the hot verbs all of them are text
        except TypeError:
            bound = [None if value is None else str(value).encode() for value in chosen]
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
        self._columns: dict[bytes, abc.Transformer] = {}
        """By statement, what makes values of its answers; known once the server has said of which types they are."""
        self._readable, self._usable = select.poll(), select.poll()
        self._readable.register(self._server.socket, select.POLLIN)
        self._usable.register(self._server.socket, select.POLLIN | select.POLLOUT)
        self._server.enter_pipeline_mode()

    @property
    def closed(self) -> bool:
        return self._server.status != _OPEN

    def close(self) -> None:
        self._connection.close()

    def trip(self, sent: Sequence[Sent], *, ends: bool) -> list[Any]:
        """Sends statements and waits for the answers; the rows of the last that has any to give. With `ends`, all that
        was sent since the last end is done and durable when this returns; when the server refuses, none of it is."""
        answered = False
        try:
            alone = ends and len(sent) == 1 and sent[0][0].name in self._prepared
            rows = self._one(*sent[0]) if alone else self._several(sent, ends=ends)
            answered = True
            if ends:
                end = self._next() if self._server.is_busy() else self._server.get_result()
                if end is None or end.status != _SYNCED:
                    self._end(end)
        except Error:
            if not answered and not self.closed:
                self._skip(synced=ends)
            raise
        except BaseException:
            self.close()  # somebody has interrupted it in the middle of something
            raise
        return rows

    def undo(self, *, written: bool) -> None:
        """Nothing that was sent since the last end happens. Questions alone leave nothing to take back."""
        try:
            if written:
                self._server.send_query_params(b"ROLLBACK", None)
        except Error:
            self.close()
        else:
            self._skip(synced=False)

    def _one(self, statement: Statement, bound: Bound) -> list[Any]:
        """The same as `_several`, for what the hot verbs send: one statement that is known there, and the end."""
        server = self._server
        server.send_query_prepared(statement.name, bound)
        server.pipeline_sync()
        if server.flush():
            self._flush()
        while server.is_busy():
            self._readable.poll()
            server.consume_input()
        result = server.get_result()
        if result is None or result.status not in _WELL:
            raise self._failure(result)
        if server.get_result() is not None:
            raise _said_more()
        return self._rows(statement.name, result) if result.nfields else [()] * (result.command_tuples or 0)

    def _several(self, sent: Sequence[Sent], *, ends: bool) -> list[Any]:
        unread: list[bytes | Statement] = []
        for statement, bound in sent:
            self._send(statement, bound, unread)
        if ends:
            self._server.pipeline_sync()
        else:
            self._server.send_flush_request()
        self._flush()
        return self._answers(unread)

    def _send(self, statement: Statement, bound: Bound, unread: list[bytes | Statement]) -> None:
        """Adds what will be answered: the name of a statement that is prepared, the statement itself for its rows."""
        name = statement.name
        if name not in self._prepared:
            self._server.send_prepare(name, statement.text.encode())
            self._prepared.add(name)
            unread.append(name)
        self._server.send_query_prepared(name, bound)
        unread.append(statement)

    def _answers(self, unread: list[bytes | Statement]) -> list[Any]:
        """The rows of the last that has columns; where none has, an empty one for each that the last has written. The
        first that failed is what went wrong."""
        rows: list[Any] | None = None
        written: int | None = 0
        for place, step in enumerate(unread):
            result = self._next()
            if result is None or result.status not in _WELL:
                # The server skips what is behind a failure.
                self._prepared.difference_update(name for name in unread[place:] if isinstance(name, bytes))
                raise self._failure(result)
            if self._server.get_result() is not None:
                raise _said_more()
            if not result.nfields:
                written = result.command_tuples
            elif isinstance(step, Statement):
                rows = self._rows(step.name, result)
        return [()] * (written or 0) if rows is None else rows

    def _rows(self, name: bytes, result: PGresult) -> list[Any]:
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = Transformer()
            columns.set_loader_types([result.ftype(column) for column in range(result.nfields)], Format.TEXT)
        columns.set_pgresult(result, set_loaders=False)
        return columns.load_rows(0, result.ntuples, tuple)

    def _end(self, met: PGresult | None) -> None:
        """Where something else came behind the answers."""
        try:
            failed = self._to_sync_point(met)
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
            self._to_sync_point(self._next())
        except BaseException as error:
            self.close()  # nobody knows where it stands
            if not isinstance(error, Error):
                raise

    def _to_sync_point(self, result: PGresult | None) -> PGresult | None:
        """The failure that was met on the way, if any."""
        failed: PGresult | None = None
        silent = 0
        while result is None or result.status != _SYNCED:
            silent = silent + 1 if result is None else 0
            if self.closed or silent > 1:
                raise self._failure(result)
            if result is not None and result.status == ExecStatus.FATAL_ERROR:
                failed = failed or result
            result = self._next()
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
        while self._server.is_busy():
            self._readable.poll()
            self._server.consume_input()
        return self._server.get_result()


def _said_more() -> OperationalError:
    return OperationalError("the server said more than it was asked")
