"""`python -m mam.work.drivers.codex OPTIONS -- PROGRAM ARGS`: one turn of Codex through its app-server.

`codex exec` never asks. The app-server sends each approval as a request, which becomes a question of the job. The
driver reads the brief from stdin and prints what `codex exec --json` would print.

The policies of Codex 0.166.0:
- `untrusted` asks before every command. What was allowed runs in the sandbox; if the sandbox stops it at once, Codex
  runs it again outside, but not if that takes longer than a moment. So a sandbox that forbids writing is useless here.
- `on-request` asks only when the model wants to leave the sandbox, and what was allowed runs outside. What the sandbox
  stops otherwise fails without a question.
"""

from __future__ import annotations

import argparse
import os
import sys

from mam.work.drivers.asking import Asking
from mam.work.drivers.codex_items import CodexItems
from mam.work.drivers.codex_requests import (
    ASKING,
    ELICITATION,
    INPUT,
    answers_reply,
    call_of,
    drafts_of,
    is_tool_approval,
    permission_reply,
    tool_approval,
    tool_approval_reply,
)
from mam.work.drivers.drafts import refusal
from mam.work.drivers.json_lines import JsonLinesProgram, ProgramEnded, RpcError
from mam.work.drivers.lines import Printer
from mam.work.reports.report import get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

CLIENT = {"name": "mam", "title": "mam", "version": "1"}
OWN_ARGS = (
    "app-server", "--config", "features.default_mode_request_user_input=true",
    "--config", "suppress_unstable_features_warning=true",
)  # fmt: skip
"""The feature lets the model use its tool for questions outside of its planning mode."""


class CodexTurn:
    def __init__(self, program: JsonLinesProgram, printer: Printer, policy: str) -> None:
        self._policy = policy
        self._program = program
        self._printer = printer
        self._asking = Asking(printer)
        self._items = CodexItems()

    def run(self, brief: str, thread: Json) -> bool:
        """`thread` are the parameters of the conversation, with `threadId` to resume one. Returns whether the turn
        was completed."""
        program = self._program
        program.call("initialize", {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}})
        program.notify("initialized")
        method = "thread/resume" if "threadId" in thread else "thread/start"
        try:
            found = program.call(method, thread)
        except RpcError as error:
            raise RpcError(f"{method}: {error}") from None
        self._printer.line(self._items.begin(str(get_path(found, "thread", "id"))))
        given = [{"type": "text", "text": brief, "text_elements": []}]
        program.request("turn/start", {"threadId": self._items.thread, "input": given})
        self._follow()
        self._asking.close()
        return self._items.over == "completed"

    def _follow(self) -> None:
        for message in self._program.messages():
            if "method" not in message:
                self._refused(message)
            elif "id" in message:
                self._requested(message)
            for line in self._items.lines(message):
                self._printer.line(line)
            if self._items.over is not None:
                return
        raise ProgramEnded("it ended before its turn did")

    def _refused(self, answer: Json) -> None:
        """An answer that no call waits for is that of `turn/start` or of `turn/steer`."""
        if "error" in answer and not self._items.turn:
            raise RpcError(str(get_path(answer, "error", "message")))

    # -- requests of Codex ---------------------------------------------------------------------------------------

    def _requested(self, message: Json) -> None:
        method = str(message["method"])
        if method in ASKING:
            self._asking.in_background(lambda: self._ask(method, message["id"], message.get("params")))
        elif method == ELICITATION and is_tool_approval(message.get("params")):
            self._asking.in_background(lambda: self._ask_for_tool(message["id"], message.get("params")))
        elif method == ELICITATION:
            self._program.reply(message["id"], {"action": "decline", "content": None})
        else:
            self._program.reply_unsupported(message["id"], method)

    def _ask(self, method: str, request_id: object, params: object) -> None:
        call = call_of(params)
        drafts = drafts_of(method, params, self._items.item(call), self._policy)
        decisions = [self._asking.decide(call, draft) for draft in drafts]
        if method == INPUT:
            self._program.reply(request_id, answers_reply(params, decisions))
            return
        (decision,) = decisions
        if not decision.is_allowed and not decision.is_undecided:
            self._tell(refusal(decision), params)
        self._program.reply(request_id, permission_reply(method, params, decision))

    def _ask_for_tool(self, request_id: object, params: object) -> None:
        item = self._items.running_tool(get_path(params, "serverName"))
        decision = self._asking.decide(str(item.get("id")), tool_approval(params, item))
        if not decision.is_allowed and not decision.is_undecided:
            self._tell(refusal(decision), params)
        self._program.reply(request_id, tool_approval_reply(decision))

    def _tell(self, text: str, params: object) -> None:
        """Codex takes no reason with a refusal, so the model gets it as a text of its user. It is sent first, to be
        there when the model reads that the command was refused."""
        given = [{"type": "text", "text": text, "text_elements": []}]
        turn = get_path(params, "turnId")
        self._program.request(
            "turn/steer", {"threadId": get_path(params, "threadId"), "expectedTurnId": turn, "input": given}
        )


def main(words: list[str]) -> int:
    options = _options(words)
    thread: Json = {"approvalPolicy": options.policy, "sandbox": options.sandbox}
    if options.model is not None:
        thread["model"] = options.model
    if options.resume is not None:
        thread["threadId"] = options.resume
    brief = sys.stdin.buffer.read().decode(errors="replace")
    printer = Printer()
    program = JsonLinesProgram([options.program, *OWN_ARGS, *options.args])
    is_completed = False
    try:
        is_completed = CodexTurn(program, printer, options.policy).run(brief, thread)
    except (RpcError, ProgramEnded) as error:
        printer.error(str(error))
    code = program.close()
    return 0 if is_completed else code or 1


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--policy", "--sandbox"):
        parser.add_argument(name, required=True)
    for name in ("--model", "--resume"):
        parser.add_argument(name)
    parser.add_argument("program")
    parser.add_argument("args", nargs="*")
    return parser.parse_args(words)


if __name__ == "__main__":
    # Ends at once: threads may wait for an answer that no one needs any more.
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
