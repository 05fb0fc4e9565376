"""`python -m mam.work.drivers.opencode OPTIONS -- PROGRAM`: one turn of OpenCode through its server.

`opencode run` refuses whatever it would have to ask. The server reports each request as an event and waits for the
reply, so it becomes a question of the job. The driver reads the brief from stdin and prints what `opencode run --format
json` would print.

The server takes its password from its environment, which the agent's commands inherit. A reply that is not the driver's
own therefore ends the turn.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from mam.work.drivers.asking import Asking
from mam.work.drivers.lines import Printer
from mam.work.drivers.opencode_events import OpenCodeEvents
from mam.work.drivers.opencode_requests import (
    answers_of,
    call_of,
    permission_of,
    permission_reply,
    questions_of,
)
from mam.work.drivers.opencode_server import OpenCodeServer, ServerError
from mam.work.reports.report import get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

OWN_ARGS = ("serve", "--hostname", "127.0.0.1", "--port", "0", "--print-logs", "--log-level", "ERROR")


class OpenCodeTurn:
    def __init__(self, server: OpenCodeServer, printer: Printer) -> None:
        self._server = server
        self._printer = printer
        self._asking = Asking(printer)
        self._replied: set[str] = set()

    def run(self, brief: str, session: str | None, model: str | None) -> bool:
        """Returns whether the turn came to its end."""
        session = self._open(session)
        events = self._server.events()
        prompt: Json = {"parts": [{"type": "text", "text": brief}]}
        if model is not None:
            provider, _, name = model.partition("/")
            prompt["model"] = {"providerID": provider, "modelID": name}
        self._server.call("POST", f"/session/{session}/prompt_async", prompt)
        shown = OpenCodeEvents(session)
        for event in events:
            self._requested(event)
            self._check_reply(event, session)
            line = shown.line(event, time.time_ns() // 1_000_000)
            if line is not None:
                self._printer.line(line)
            if shown.is_over:
                break
        self._asking.close()
        return shown.is_over

    def _open(self, session: str | None) -> str:
        if session is None:
            return str(get_path(self._server.call("POST", "/session", {}), "id"))
        try:
            self._server.call("GET", f"/session/{session}")
        except ServerError as error:
            if error.status == 404:
                raise ServerError(f"Session not found: {session}") from None
            raise
        return session

    def _check_reply(self, event: Json, session: str) -> None:
        """An agent's command could find the password of the server and answer for the person. That ends the turn."""
        if event.get("type") not in ("permission.replied", "question.replied"):
            return
        replied = event.get("properties")
        if not {get_path(replied, "requestID"), get_path(replied, "permissionID")} & self._replied:
            self._server.call("POST", f"/session/{session}/abort", {})
            raise ServerError("something other than mam answered a request of OpenCode")

    # -- requests of OpenCode ------------------------------------------------------------------------------------

    def _requested(self, event: Json) -> None:
        """Also those of subagents: this server has no other user."""
        asked = event.get("properties")
        match event.get("type"):
            case "permission.asked":
                self._asking.in_background(lambda: self._ask_permission(asked))
            case "question.asked":
                self._asking.in_background(lambda: self._ask_questions(asked))

    def _ask_permission(self, asked: object) -> None:
        decision = self._asking.decide(call_of(asked), permission_of(asked))
        self._replied.add(str(get_path(asked, "id")))
        self._reply(f"/permission/{get_path(asked, 'id')}/reply", permission_reply(decision))

    def _ask_questions(self, asked: object) -> None:
        decisions = [self._asking.decide(call_of(asked), draft) for draft in questions_of(asked)]
        answers = answers_of(decisions)
        self._replied.add(str(get_path(asked, "id")))
        path = f"/question/{get_path(asked, 'id')}"
        if answers is None:
            self._reply(f"{path}/reject", {})
        else:
            self._reply(f"{path}/reply", answers)

    def _reply(self, path: str, body: Json) -> None:
        try:
            self._server.call("POST", path, body)
        except ServerError as error:
            self._printer.error(str(error))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model")
    parser.add_argument("--session")
    parser.add_argument("program")
    options = parser.parse_args(words)
    brief = sys.stdin.buffer.read().decode(errors="replace")
    printer = Printer()
    is_over, server = False, None
    try:
        server = OpenCodeServer([options.program, *OWN_ARGS])
        is_over = OpenCodeTurn(server, printer).run(brief, options.session, options.model)
    except ServerError as error:
        printer.error(str(error))
    finally:
        if server is not None:
            server.close()
    return 0 if is_over else 1


if __name__ == "__main__":
    # Ends at once: threads may wait for an answer that no one needs any more.
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
