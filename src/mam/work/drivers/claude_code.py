"""`python -m mam.work.drivers.claude_code PROGRAM ARGS`: one turn of Claude Code that asks over its stdin and stdout.

Headless, Claude Code offers its tool for questions only if something answers its prompts, and its stdin must stay open
for the answers. The driver reads the brief from its own stdin and prints every line of Claude Code but the requests.
"""

from __future__ import annotations

import os
import sys

from mam.work.drivers.asking import Asking
from mam.work.drivers.claude_requests import (
    QUESTION_TOOL,
    permission_of,
    permission_reply,
    questions_of,
    questions_reply,
)
from mam.work.drivers.json_lines import JsonLinesProgram, outlive_sigterm
from mam.work.drivers.lines import Printer
from mam.work.reports.report import get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

ARGS = ("--input-format", "stream-json", "--permission-prompt-tool", "stdio")


class ClaudeTurn:
    def __init__(self, program: JsonLinesProgram, printer: Printer) -> None:
        self._program = program
        self._printer = printer
        self._asking = Asking(printer)
        self._cancelled: set[str] = set()
        """Requests that Claude Code takes back, for instance when their turn is interrupted."""

    def run(self, brief: str) -> None:
        """Until the program has ended. It ends when its stdin does, which is after the turn."""
        content = [{"type": "text", "text": brief}]
        self._program.send({"type": "user", "message": {"role": "user", "content": content}})
        for line, message in self._program.lines():
            match None if message is None else message.get("type"):
                case "control_request":
                    self._requested(message or {})
                case "control_cancel_request":
                    self._cancelled.add(str(get_path(message, "request_id")))
                case "result":
                    self._printer.raw(line)
                    self._asking.close()
                    self._program.close_input()
                case _:
                    self._printer.raw(line)
        self._asking.close()

    def _requested(self, message: Json) -> None:
        request_id, request = str(message.get("request_id")), message.get("request")
        if get_path(request, "subtype") == "can_use_tool":
            self._asking.in_background(lambda: self._ask(request_id, request))
            return
        error = {"subtype": "error", "request_id": request_id, "error": "mam does not support this request"}
        self._program.send({"type": "control_response", "response": error})

    def _ask(self, request_id: str, request: object) -> None:
        call = str(get_path(request, "tool_use_id") or request_id)

        def is_over() -> bool:
            return request_id in self._cancelled

        if get_path(request, "tool_name") == QUESTION_TOOL:
            decisions = [self._asking.decide(call, draft, is_over) for draft in questions_of(request)]
            reply = questions_reply(request, decisions)
        else:
            reply = permission_reply(request, self._asking.decide(call, permission_of(request), is_over))
        response = {"subtype": "success", "request_id": request_id, "response": reply}
        self._program.send({"type": "control_response", "response": response})


def main(words: list[str]) -> int:
    outlive_sigterm()
    program, *args = words
    brief = sys.stdin.buffer.read().decode(errors="replace")
    claude = JsonLinesProgram([program, *ARGS, *args])
    ClaudeTurn(claude, Printer()).run(brief)
    return claude.close()


if __name__ == "__main__":
    # Ends at once: threads may wait for an answer that no one needs any more.
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code if 0 <= code < 256 else 1)
