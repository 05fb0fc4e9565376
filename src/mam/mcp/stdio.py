"""MCP on stdin and stdout: one JSON message a line.

One thread reads, decides and writes, so requests see the store in their order. A request that waits for jobs is parked;
another thread follows the journal and wakes this one. The end of stdin ends the server, and no job.
"""

from __future__ import annotations

import os
import select
import time

from mam.errors import MamError
from mam.mcp.line_reader import LineReader
from mam.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Answer,
    Notification,
    RpcError,
    encode,
    error_message,
    id_of,
    read_message,
    result_message,
    too_long,
)
from mam.mcp.open_forms import PUT_OFF, OpenForms
from mam.mcp.outcome import Listening, Parked, Watching
from mam.mcp.protocol import answer, bug, handshake
from mam.mcp.versions import client_of
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.backend import Changes
    from mam.mcp.caller import Service
    from mam.mcp.messages import Id, Json, Request
    from mam.mcp.protocol import Outcome
    from mam.mcp.versions import Client

READ_BYTES = 1 << 16
MOST_OPEN = 64
"""Requests that wait, and streams, at once."""

LONGEST_WAIT_SECONDS = 60.0


class _Waiting(Frozen):
    request: Request
    parked: Parked
    ends: float
    forms: frozenset[str] = frozenset()
    """The questions with which it waits for the user of a client with a handshake."""


class StdioServer:
    def __init__(self, service: Service, read_from: int, write_to: int) -> None:
        self._service = service
        self._input = read_from
        self._output = write_to
        self._client: Client | None = None
        """Who introduced itself with `initialize`; it stays until the process ends."""
        self._waiting: dict[Id, _Waiting] = {}
        self._streams: dict[Id, Listening] = {}
        self._watched: dict[str, str] = {}
        """The jobs of the resources that a client with a handshake subscribed to."""
        self._follower: Changes | None = None
        self._forms = OpenForms(self._send)
        self._lines = LineReader()

    def run(self) -> None:
        """Serves until stdin ends or the reader of stdout is gone."""
        try:
            while self._turn():
                pass
            for request_id, stream in self._streams.items():
                self._send(result_message(request_id, stream.closing))
        except BrokenPipeError:
            return
        finally:
            if self._follower is not None:
                self._follower.stop()

    def _turn(self) -> bool:
        """Waits for a message, a change or the end of a time. False when stdin has ended."""
        poll = select.poll()
        poll.register(self._input, select.POLLIN)
        if self._follower is not None:
            poll.register(self._follower.wakes, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(self._milliseconds_left())]
        is_open = True
        if self._input in ready:
            data = os.read(self._input, READ_BYTES)
            is_open = bool(data)
            for line in self._lines.feed(data) if is_open else self._lines.rest():
                self._handle(line)
        if self._follower is not None and self._follower.wakes in ready:
            self._after_changes(self._follower.take())
        self._after_time()
        if self._follower is not None:
            self._follower.watch(self._watched_jobs())
        return is_open

    def _watched_jobs(self) -> frozenset[str]:
        waiting = (one.parked.jobs for one in self._waiting.values())
        asked = (question.partition(".")[0] for question in self._forms.questions)
        return frozenset(self._watched.values()).union(
            asked, *waiting, *(stream.jobs for stream in self._streams.values())
        )

    def _milliseconds_left(self) -> int | None:
        if not self._waiting:
            return None
        left = min(waiting.ends for waiting in self._waiting.values()) - time.monotonic()
        return max(0, int(min(left, LONGEST_WAIT_SECONDS) * 1000) + 1)

    # -- messages ------------------------------------------------------------------------------------------------------

    def _handle(self, line: bytes | None) -> None:
        """None is a line that was too long."""
        if line is not None and not line.strip():
            return
        request_id: Id | None = None
        try:
            if line is None:
                raise too_long()
            try:
                message = read_message(line)
            except RpcError:
                request_id = id_of(line)
                raise
            if isinstance(message, Notification):
                self._notice(message)
            elif isinstance(message, Answer):
                self._take_form(message)
            else:
                request_id = message.id
                self._request(message)
        except RpcError as error:
            self._send(error_message(request_id, error))
        except BrokenPipeError:
            raise
        except (MamError, OSError) as error:  # the store could not be followed
            self._send(error_message(request_id, RpcError(INTERNAL_ERROR, str(error))))

    def _notice(self, message: Notification) -> None:
        """A cancelled request gets no answer. Its job goes on."""
        if message.method == "notifications/cancelled":
            cancelled = message.params.get("requestId")
            if isinstance(cancelled, str | int):
                self._waiting.pop(cancelled, None)
                self._streams.pop(cancelled, None)

    def _request(self, request: Request) -> None:
        if request.id in self._waiting or request.id in self._streams:
            raise RpcError(INVALID_REQUEST, "another request with this id is still open")
        if request.method == "initialize":
            self._client, result = handshake(request.params)
            self._send(result_message(request.id, result))
            return
        if request.method == "ping" and "_meta" not in request.params:  # also before a handshake
            self._send(result_message(request.id, {}))
            return
        client = client_of(request.params, self._client)
        self._give(request, answer(self._service, client, request))

    def _give(self, request: Request, outcome: Outcome) -> None:
        request_id = request.id
        if isinstance(outcome, Parked):
            self._park(request, outcome)
        elif isinstance(outcome, Listening):
            self._check_room()
            if outcome.jobs:
                self._follow()
            self._streams[request_id] = outcome
            self._send(outcome.opening)
        elif isinstance(outcome, Watching):
            self._watch(outcome)
            self._send(result_message(request_id, outcome.result))
        else:
            self._send(result_message(request_id, outcome))

    def _park(self, request: Request, parked: Parked) -> None:
        """The follower starts before the first look, so that no change falls between the two."""
        self._check_room()
        self._follow()
        self._waiting[request.id] = _Waiting(request=request, parked=parked, ends=time.monotonic() + parked.seconds)
        self._look(request.id)

    def _watch(self, watching: Watching) -> None:
        if watching.job is None:
            self._watched.pop(watching.uri, None)
            return
        if watching.uri not in self._watched:
            self._check_room()
        self._follow()
        self._watched[watching.uri] = watching.job

    def _check_room(self) -> None:
        if len(self._waiting) + len(self._streams) + len(self._watched) >= MOST_OPEN:
            raise RpcError(INVALID_REQUEST, f"{MOST_OPEN} requests are open; wait for one of them to end")

    def _send(self, message: Json) -> None:
        data = encode(message)
        while data:
            data = data[os.write(self._output, data) :]

    # -- changes -------------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        if self._follower is None:
            self._follower = self._service.backend.follower()
            self._follower.start()

    def _after_changes(self, jobs: set[str]) -> None:
        if self._waiting:
            self._sweep()
        for request_id, waiting in list(self._waiting.items()):
            if not waiting.parked.jobs.isdisjoint(jobs):
                self._look(request_id)
        self._close_forms(jobs)
        for job_id in sorted(jobs):
            for stream in list(self._streams.values()):
                if job_id in stream.jobs:
                    self._send_all(stream, job_id)
            self._send_updates(job_id)

    def _sweep(self) -> None:
        """An expired lease or a passed deadline is noticed even if no worker runs."""
        try:
            self._service.backend.sweep()
        except (MamError, OSError):
            return  # the next request reports it

    def _send_all(self, stream: Listening, job_id: str) -> None:
        try:
            messages = stream.changed(job_id)
        except (RpcError, MamError, OSError):
            return  # the job is gone, or the store is away: a later read reports it
        for message in messages:
            self._send(message)

    def _send_updates(self, job_id: str) -> None:
        from mam.mcp.subscriptions import resource_changed

        for uri, job in self._watched.items():
            if job == job_id:
                self._send(resource_changed(uri))

    def _after_time(self) -> None:
        now = time.monotonic()
        for request_id, waiting in list(self._waiting.items()):
            if waiting.ends <= now:
                self._look(request_id, is_over=True)

    def _look(self, request_id: Id, *, is_over: bool = False) -> None:
        """Sends the result of a waiting request if there is one now."""
        waiting = self._waiting[request_id]
        try:
            result = waiting.parked.check(is_over)
        except RpcError as error:
            message = error_message(request_id, error)
        except Exception as error:
            message = error_message(request_id, bug(error))
        else:
            if result is None:
                return
            if self._client_shows_forms(waiting, result):
                self._show_forms(waiting, result["inputRequests"], is_over=is_over)
                return
            message = result_message(request_id, result)
        del self._waiting[request_id]
        self._send(message)

    # -- forms ---------------------------------------------------------------------------------------------------------

    def _client_shows_forms(self, waiting: _Waiting, result: Json) -> bool:
        is_old = not client_of(waiting.request.params, self._client).is_stateless
        return is_old and result.get("resultType") == "input_required"

    def _show_forms(self, waiting: _Waiting, forms: Json, *, is_over: bool) -> None:
        """The request waits on for its user. At its end the agent learns of the open questions, and the forms stay."""
        assert self._client is not None
        self._forms.show(forms, self._client.version)
        self._waiting[waiting.request.id] = waiting.replace(forms=frozenset(forms))
        if is_over:
            self._repeat(waiting.request.id, dict.fromkeys(forms, PUT_OFF), is_over=True)

    def _take_form(self, message: Answer) -> None:
        taken = self._forms.take(message)
        if taken is None:
            return
        question, response = taken
        waiting = [request_id for request_id, one in self._waiting.items() if question in one.forms]
        for request_id in waiting:
            self._repeat(request_id, {question: response})
        if not waiting and self._client is not None:  # its request ended before
            from mam.mcp.forms import answer_form

            answer_form(self._service, self._client, question, response)

    def _repeat(self, request_id: Id, responses: Json, *, is_over: bool = False) -> None:
        """What a newer client does: the same call again, with the responses of its user."""
        waiting = self._waiting.pop(request_id)
        params = waiting.request.params
        earlier = params.get("inputResponses")
        given = {**(earlier if isinstance(earlier, dict) else {}), **responses}
        request = waiting.request.replace(params={**params, "inputResponses": given})
        try:
            outcome = answer(self._service, client_of(params, self._client), request)
        except RpcError as error:
            self._send(error_message(request_id, error))
            return
        if isinstance(outcome, Parked):
            self._waiting[request_id] = waiting.replace(request=request, parked=outcome, forms=frozenset())
            self._look(request_id, is_over=is_over)
        else:
            self._give(request, outcome)

    def _close_forms(self, jobs: set[str]) -> None:
        from mam.mcp.forms import is_open

        for question in self._forms.questions:
            if question.partition(".")[0] in jobs and not is_open(self._service, question):
                self._forms.close(question)
