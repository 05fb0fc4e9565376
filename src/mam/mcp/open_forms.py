"""Forms at a client with a handshake: the server asks for each with a request of its own, and the client answers it.

A client of 2026-07-28 gets the forms as the result of its call instead, and repeats the call with what its user
answered. The server does the same here in its place, so the tools know one way only.
"""

from __future__ import annotations

from mam.mcp.messages import request_message
from mam.mcp.versions import OLDEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.mcp.messages import Answer, Json

MOST = 16
"""Forms at one time. A question without a form is still reported to the agent, and `mam questions` lists it."""

PUT_OFF: Json = {"action": "cancel"}
"""The user closed the form: the question stays open."""


class OpenForms:
    def __init__(self, send: Callable[[Json], None]) -> None:
        self._send = send
        self._requests: dict[str, str] = {}
        """The id of the question of each request."""
        self._count = 0

    @property
    def questions(self) -> list[str]:
        return list(self._requests.values())

    def show(self, forms: Json, version: str) -> None:
        """Each once: a form stays at the client until it is answered or its question is closed."""
        for question, form in forms.items():
            if question in self._requests.values() or len(self._requests) >= MOST:
                continue
            self._count += 1
            request_id = f"form-{self._count}"
            self._requests[request_id] = question
            params = dict(form["params"])
            if version == OLDEST:
                del params["mode"]  # it had forms only
            self._send(request_message(request_id, form["method"], params))

    def take(self, answer: Answer) -> tuple[str, Json] | None:
        """The question that the answer is about, and the response. A client that failed has put it off."""
        question = self._requests.pop(answer.id, None) if isinstance(answer.id, str) else None
        if question is None:
            return None
        return question, PUT_OFF if answer.result is None else answer.result

    def close(self, question: str) -> None:
        """The question was answered elsewhere, or is withdrawn."""
        for request_id, one in list(self._requests.items()):
            if one == question:
                del self._requests[request_id]
                params = {"requestId": request_id, "reason": "the question is closed"}
                self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
