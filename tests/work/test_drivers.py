"""What agents ask through their protocols, and what drivers print. Messages are those of the real programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaits
from typing import TYPE_CHECKING, Any

import pytest

from mam.conversation.claude_code import ClaudeCodeConversation
from mam.conversation.codex import CodexConversation
from mam.conversation.items import Asked, Notice
from mam.conversation.opencode import OpenCodeConversation
from mam.conversation.reader import ConversationReader, read_all
from mam.jobs.question import PERMISSION, QUESTION, TEXT_LIMIT, check_draft
from mam.jobs.rules import first_match, rule_from_fields
from mam.work.asking.port import Decision
from mam.work.drivers import claude_hook, claude_requests, codex_requests, opencode_requests
from mam.work.drivers.asking import Asking
from mam.work.drivers.codex_items import CodexItems
from mam.work.drivers.drafts import fitting, permission_draft, question_draft, refusal, script_of
from mam.work.drivers.lines import Printer, answered_line, asked_line
from mam.work.drivers.opencode_events import OpenCodeEvents
from mam.work.reports.codex import CodexReader, read_rollout
from mam.work.reports.opencode import OpenCodeReader
from mam.work.reports.report import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from mam.conversation.items import Item

ALLOWED = Decision(outcome="allow", decided="person", question=1)
DENIED = Decision(outcome="deny", decided="person", reason="use a branch", question=1)
BY_RULE = Decision(outcome="deny", decided="rule")
LATE = Decision(outcome="deny", decided="deadline", question=1)
GONE = Decision(outcome="withdrawn", question=1)
ANSWERED = Decision(outcome="answer", decided="person", text="No", question=1)

COMMAND = {
    "kind": "command", "threadId": "t", "turnId": "u", "itemId": "call_1",
    "command": "/bin/bash -lc \"echo 'it was me' > notes.txt\"", "cwd": "/home/user/project",
    "availableDecisions": ["accept", "cancel"],
}  # fmt: skip
ASKED = {
    "id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["npm test"],
    "metadata": {"command": "npm test", "description": "as told"}, "tool": {"messageID": "m", "callID": "call_1"},
}  # fmt: skip


# -- drafts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("/bin/bash -lc 'npm test && ls'", "npm test && ls"),
        (["bash", "-c", "ls -l"], "ls -l"),
        ("git status", "git status"),
        (["git", "commit", "-m", "two words"], "git commit -m 'two words'"),
        ("bash -lc 'a' b", "bash -lc 'a' b"),
        ("./bash -lc 'git status'", "./bash -lc 'git status'"),
        (["/tmp/bash", "-lc", "git status"], "/tmp/bash -lc 'git status'"),
        ("echo 'open", "echo 'open"),
    ],
)
def test_a_command_is_shown_without_the_shell_around_it(command: object, script: str) -> None:
    assert script_of(command) == script


def test_an_input_that_no_question_can_hold_says_what_is_left_out() -> None:
    given = {"file_path": "/x", "content": "a" * 500_000, "edits": [{"new": "b" * 500_000}]}

    shown = fitting(given)

    assert shown["file_path"] == "/x"
    assert "characters are left out here; SHA-256 of the whole text: " in shown["content"]
    assert shown["content"].startswith("aaa")
    check_draft(permission_draft("Codex", "change files", "apply_patch", given))


def test_any_input_of_a_tool_fits_into_a_question() -> None:
    for given in ({"x": ["a" * 100] * 20_000}, {f"k{n}": "v" * 50 for n in range(20_000)}, {"x": "\0\ud800"}):
        check_draft(permission_draft("X", "do it", "tool", given))


def test_a_command_among_much_else_is_still_one_for_the_rules() -> None:
    """Otherwise a rule about a tool would allow any command of it."""
    rule = rule_from_fields({"do": "allow", "tool": "shell"})
    rest = {f"k{n}": "v" * 50 for n in range(20_000)}
    for command, is_allowed in (("git status", True), ("git status; rm x", False), ("git " + "x" * 500_000, False)):
        for given in ({"command": command}, {"command": command, "rest": rest}):
            draft = permission_draft("Codex", "run a command", "shell", given)
            assert (first_match([rule], "codex", draft) is not None) is is_allowed


def test_a_small_input_is_shown_as_it_is() -> None:
    given = {"command": "rm -rf build", "nested": {"list": [1, None, "x" * 20_000]}}
    assert fitting(given) == given


def test_choices_that_cannot_be_told_apart_are_part_of_the_text() -> None:
    assert question_draft("Which?", ["a", "a"]).choices == ()
    assert question_draft("Which?", ["a", "a"]).text == "Which?\n- a\n- a"
    assert question_draft("Which?", ["a", None, " b\n"]).choices == ("a", "b")
    assert len(question_draft("x" * TEXT_LIMIT).text) < TEXT_LIMIT
    check_draft(question_draft(None))


def test_a_refusal_tells_the_model_who_decided() -> None:
    assert refusal(DENIED) == "A person refused this: use a branch"
    assert refusal(BY_RULE).startswith("A rule of the user refuses this.")
    assert refusal(LATE) == "No one answered before the deadline, so this is refused."
    assert refusal(GONE) == "No one will answer this: the attempt has ended."


# -- Codex -----------------------------------------------------------------------------------------------------------


def test_codex_asks_with_the_exact_command() -> None:
    (draft,) = codex_requests.drafts_of(codex_requests.COMMAND, COMMAND, {}, "untrusted")

    assert (draft.kind, draft.tool, draft.text) == (PERMISSION, "shell", "Codex wants to run a command.")
    assert draft.input == {"command": "echo 'it was me' > notes.txt", "cwd": "/home/user/project"}


def test_a_question_says_that_a_command_leaves_its_sandbox() -> None:
    begged = {**COMMAND, "reason": "Please"}
    for params, policy in ((begged, "untrusted"), (COMMAND, "on-request")):
        (draft,) = codex_requests.drafts_of(codex_requests.COMMAND, params, {}, policy)
        assert draft.text == "Codex wants to run a command outside its sandbox."


def test_codex_shows_the_diff_of_an_edit() -> None:
    change = {"path": "a.py", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n-x\n+y"}
    item = {"type": "fileChange", "id": "call_1", "changes": [change]}

    (draft,) = codex_requests.drafts_of(codex_requests.FILES, {"itemId": "call_1"}, item, "untrusted")

    assert (draft.tool, draft.input) == ("apply_patch", {"changes": [change]})


@pytest.mark.parametrize(
    ("decision", "reply"), [(ALLOWED, "accept"), (DENIED, "decline"), (LATE, "cancel"), (GONE, "cancel")]
)
def test_codex_is_told_once(decision: Decision, reply: str) -> None:
    assert codex_requests.permission_reply(codex_requests.COMMAND, COMMAND, decision) == {"decision": reply}


def test_codex_gets_the_rights_it_asked_for_or_none() -> None:
    params = {"permissions": {"network": {"enabled": True}}}
    granted = codex_requests.permission_reply(codex_requests.RIGHTS, params, ALLOWED)
    assert granted == {"permissions": {"network": {"enabled": True}}, "scope": "turn"}
    assert codex_requests.permission_reply(codex_requests.RIGHTS, params, DENIED)["permissions"] == {}


def test_codex_asks_for_a_tool_of_an_mcp_server_and_shows_no_form() -> None:
    params = {
        "threadId": "t", "serverName": "srv", "mode": "form", "message": 'Allow the srv MCP server to run tool "save"?',
        "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["always"], "tool_params": {"what": "x"}},
    }  # fmt: skip
    items = CodexItems()
    items.begin("t")
    use = {"type": "mcpToolCall", "id": "call_1", "server": "srv", "tool": "save", "status": "inProgress"}
    items.lines({"method": "item/started", "params": {"threadId": "t", "item": use}})

    assert codex_requests.is_tool_approval(params)
    assert not codex_requests.is_tool_approval({**params, "_meta": None})
    draft = codex_requests.tool_approval(params, items.running_tool("srv"))
    assert (draft.tool, draft.input) == ("srv.save", {"message": params["message"], "arguments": {"what": "x"}})
    assert items.running_tool("other") == {}
    replies = [codex_requests.tool_approval_reply(one)["action"] for one in (ALLOWED, DENIED, LATE)]
    assert replies == ["accept", "decline", "cancel"]


def test_each_question_of_codex_gets_its_answer() -> None:
    options = [{"label": "Yes", "description": "Do it"}, {"label": "No", "description": "Leave it"}]
    params = {"questions": [{"id": "a", "question": "Which?", "options": options}, {"id": "b", "question": "Why?"}]}

    drafts = codex_requests.drafts_of(codex_requests.INPUT, params, {}, "untrusted")

    assert [(one.kind, one.text, one.choices) for one in drafts] == [
        (QUESTION, "Which?", ("Yes", "No")), (QUESTION, "Why?", ()),
    ]  # fmt: skip
    replied = codex_requests.answers_reply(params, [ANSWERED, LATE])
    assert replied == {"answers": {"a": {"answers": ["No"]}, "b": {"answers": []}}}


def test_items_of_codex_are_printed_as_exec_prints_them() -> None:
    items = CodexItems()
    usage = {"inputTokens": 222, "cachedInputTokens": 22, "outputTokens": 44, "reasoningOutputTokens": 0}
    command = {
        "type": "commandExecution", "id": "call_1", "command": "ls", "status": "completed", "aggregatedOutput": None,
        "exitCode": 0,
    }  # fmt: skip
    lines = [items.begin("t")]
    for method, params in (
        ("turn/started", {"turn": {"id": "u"}}),
        ("item/started", {"item": {"type": "userMessage", "id": "x"}}),
        ("item/completed", {"item": command}),
        ("item/completed", {"item": {"type": "agentMessage", "id": "msg", "text": "Done."}}),
        ("thread/tokenUsage/updated", {"tokenUsage": {"total": usage}}),
        ("turn/completed", {"turn": {"status": "completed", "error": None}}),
    ):
        lines += items.lines({"method": method, "params": {"threadId": "t", **params}})

    report = fed(CodexReader(), lines)

    assert report.unknown_lines == 0
    assert (report.session, report.last_message, report.is_over) == ("t", "Done.", True)
    assert report.tokens == {"input": 200, "cached": 22, "output": 44}
    assert items.over == "completed"


def test_what_a_subagent_of_codex_does_is_not_printed() -> None:
    items = CodexItems()
    items.begin("t")
    item = {"type": "fileChange", "id": "call_9", "changes": [{"path": "a"}]}
    assert items.lines({"method": "item/started", "params": {"threadId": "other", "item": item}}) == []
    assert items.lines({"method": "turn/completed", "params": {"threadId": "other", "turn": {}}}) == []
    assert items.over is None
    assert items.item("call_9") == item


def test_a_failed_turn_of_codex_has_its_reason() -> None:
    items = CodexItems()
    items.begin("t")
    error = {"message": "You’ve hit your usage limit. Try again at 5:55 AM."}
    lines = items.lines({"method": "error", "params": {"threadId": "t", "error": error}})
    lines += items.lines({"method": "turn/completed", "params": {"threadId": "t", "turn": {"status": "failed"}}})

    problem = fed(CodexReader(), lines).problem

    assert problem is not None
    assert problem.kind == "limit"


# -- OpenCode --------------------------------------------------------------------------------------------------------


def test_opencode_asks_with_its_input() -> None:
    draft = opencode_requests.permission_of(ASKED)
    assert (draft.tool, draft.text) == ("bash", "OpenCode wants to run a command.")
    assert draft.input == {"command": "npm test", "description": "as told"}
    assert opencode_requests.call_of(ASKED) == "call_1"


def test_opencode_shows_patterns_that_say_more() -> None:
    draft = opencode_requests.permission_of({**ASKED, "patterns": ["npm *", "ls"]})
    assert draft.input is not None
    assert draft.input["patterns"] == ["npm *", "ls"]


@pytest.mark.parametrize(
    ("decision", "reply"),
    [
        (ALLOWED, {"reply": "once"}),
        (DENIED, {"reply": "reject", "message": "A person refused this: use a branch"}),
        (LATE, {"reply": "reject"}),
    ],
)
def test_opencode_is_told_once(decision: Decision, reply: dict[str, str]) -> None:
    assert opencode_requests.permission_reply(decision) == reply


def test_a_question_of_opencode_without_an_answer_is_rejected() -> None:
    assert opencode_requests.answers_of([ANSWERED, ANSWERED]) == {"answers": [["No"], ["No"]]}
    assert opencode_requests.answers_of([ANSWERED, LATE]) is None
    assert opencode_requests.answers_of([]) is None


def test_a_part_of_opencode_is_printed_once_and_whole() -> None:
    events = OpenCodeEvents("ses_1")
    text = {"type": "text", "id": "p1", "sessionID": "ses_1", "text": "Hello", "time": {"start": 1}}

    def update(part: dict[str, Any]) -> dict[str, Any] | None:
        return events.line({"type": "message.part.updated", "properties": {"part": part}}, 7)

    assert update(text) is None
    whole = {**text, "time": {"start": 1, "end": 2}}
    assert update(whole) == {"timestamp": 7, "sessionID": "ses_1", "type": "text", "part": whole}
    assert update(whole) is None
    assert update({**whole, "id": "p2", "sessionID": "of a subagent"}) is None


def test_a_turn_of_opencode_ends_when_it_is_idle_again() -> None:
    events = OpenCodeEvents("ses_1")
    for kind, is_over in (("idle", False), ("busy", False), ("idle", True)):
        status = {"sessionID": "ses_1", "status": {"type": kind}}
        events.line({"type": "session.status", "properties": status}, 7)
        assert events.is_over is is_over


# -- Claude Code -----------------------------------------------------------------------------------------------------

USE = {"tool_name": "Write", "input": {"file_path": "/x", "content": "y"}}
HOOK = {"hook_event_name": "PermissionRequest", "tool_name": "Write", "tool_input": USE["input"]}
CHOICE = {"question": "Which?", "options": [{"label": "Yes"}, {"label": "No"}], "multiSelect": False}
ASKS = {"tool_name": "AskUserQuestion", "input": {"questions": [CHOICE]}}


@pytest.mark.parametrize("request_", [USE, HOOK])
def test_claude_asks_with_its_input(request_: dict[str, Any]) -> None:
    draft = claude_requests.permission_of(request_)
    assert (draft.tool, draft.text, draft.input) == ("Write", "Claude Code wants to write a file.", USE["input"])


def test_claude_is_told_once_and_why() -> None:
    allowed = {"behavior": "allow", "updatedInput": USE["input"]}
    denied = {"behavior": "deny", "message": "A person refused this: use a branch"}
    assert claude_requests.permission_reply(USE, ALLOWED) == allowed
    assert claude_requests.permission_reply(USE, DENIED) == denied
    assert claude_requests.permission_reply(USE, LATE)["interrupt"] is True
    hooked = claude_requests.permission_output(DENIED)["hookSpecificOutput"]
    assert hooked == {"hookEventName": "PermissionRequest", "decision": denied}


def test_the_answers_of_claude_are_in_the_input_of_its_tool() -> None:
    (draft,) = claude_requests.questions_of(ASKS)
    assert (draft.text, draft.choices) == ("Which?", ("Yes", "No"))
    updated = {"questions": [CHOICE], "answers": {"Which?": "No"}}
    assert claude_requests.questions_reply(ASKS, [ANSWERED]) == {"behavior": "allow", "updatedInput": updated}
    assert claude_requests.questions_reply(ASKS, [LATE])["behavior"] == "deny"
    hooked = claude_requests.questions_output(ASKS, [DENIED])["hookSpecificOutput"]
    assert hooked["permissionDecision"] == "deny"
    assert "use a branch" in hooked["permissionDecisionReason"]


class OneAnswer:
    """An asker with an answer for everything."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def decide(self, draft: object, is_over: object = None) -> Decision:
        return self.decision


def test_a_hook_prints_nothing_if_no_one_needs_an_answer() -> None:
    question = {"hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion", "tool_input": ASKS["input"]}
    for hook in (HOOK, question):
        assert claude_hook.answer(hook, OneAnswer(GONE), lambda: False) is None
        assert claude_hook.answer(hook, OneAnswer(DENIED), lambda: False) is not None
    # Its dialog asks for the question itself, and other hooks are none of its business.
    assert claude_hook.answer({**HOOK, "tool_name": "AskUserQuestion"}, OneAnswer(ALLOWED), lambda: False) is None
    assert claude_hook.answer({"hook_event_name": "Stop"}, OneAnswer(ALLOWED), lambda: False) is None


# -- what a person sees of it ----------------------------------------------------------------------------------------


def shown(reader: ConversationReader, lines: list[dict[str, Any]]) -> list[Item]:
    from mam.util.encoding import to_bytes

    return list(read_all(reader, [to_bytes(line) + b"\n" for line in lines]))


def test_a_conversation_shows_the_question_and_the_answer() -> None:
    draft = opencode_requests.permission_of(ASKED)
    for decision, text in ((DENIED, "answered: deny: use a branch"), (ALLOWED, "answered: allow")):
        lines = [asked_line("call_1", draft), answered_line("call_1", draft, decision)]
        assert shown(CodexConversation(), lines) == [Asked(question=draft.text), Notice(text=text)]


def test_a_question_that_the_agent_shows_itself_is_shown_once() -> None:
    draft = question_draft("Which?", ["Yes", "No"])
    lines = [asked_line("call_1", draft), answered_line("call_1", draft, ANSWERED)]
    state = {"status": "completed", "input": {"questions": [CHOICE]}}
    part = {"type": "tool", "tool": "question", "callID": "call_1", "state": state}
    opencode = {"type": "tool_use", "sessionID": "s", "part": part}
    block = {"type": "tool_use", "id": "call_1", "name": "AskUserQuestion", "input": ASKS["input"]}
    claude = {"type": "assistant", "message": {"content": [block]}}

    for items in (shown(OpenCodeConversation(), [*lines, opencode]), shown(ClaudeCodeConversation(), [claude, *lines])):
        assert [item for item in items if isinstance(item, Asked)] == [Asked(question="Which?", choices=("Yes", "No"))]
        assert Notice(text="answered: No") in items


# -- what the reports make of it -------------------------------------------------------------------------------------


def fed(reader: Reader, lines: list[dict[str, Any]]) -> Any:
    from mam.util.encoding import to_bytes

    reader.feed(b"".join(to_bytes(line) + b"\n" for line in lines))
    return reader.end()


def decided(decision: Decision) -> list[dict[str, Any]]:
    draft = opencode_requests.permission_of(ASKED)
    return [asked_line("call_1", draft), answered_line("call_1", draft, decision)]


REJECTED = {
    "type": "tool_use", "sessionID": "ses_1",
    "part": {"type": "tool", "tool": "bash", "callID": "call_1", "state": {
        "status": "error", "error": "The user rejected permission to use this specific tool call.",
    }},
}  # fmt: skip
DECLINED = {"type": "item.completed", "item": {"id": "call_1", "type": "command_execution", "status": "declined"}}


@pytest.mark.parametrize(("reader", "refused"), [(OpenCodeReader, REJECTED), (CodexReader, DECLINED)])
def test_a_decided_denial_is_counted_and_is_no_failure(reader: type[Reader], refused: dict[str, Any]) -> None:
    report = fed(reader(), [*decided(DENIED), refused])
    assert (report.denied, report.denials) == ([], 1)
    assert report.to_json()["denials"] == 1


@pytest.mark.parametrize(("reader", "refused"), [(OpenCodeReader, REJECTED), (CodexReader, DECLINED)])
def test_an_undecided_denial_is_a_failure(reader: type[Reader], refused: dict[str, Any]) -> None:
    for lines in ([*decided(LATE), refused], [refused]):
        report = fed(reader(), lines)
        assert report.denied
        assert report.denials == 0


STOPPED = {
    "type": "item.completed",
    "item": {"id": "call_0", "type": "command_execution", "status": "failed",
             "aggregated_output": "touch: cannot touch '/x': Read-only file system"},
}  # fmt: skip


def test_what_a_sandbox_stopped_is_forgiven_if_the_model_then_asks() -> None:
    assert fed(CodexReader(), [STOPPED]).denied == ["a command"]
    assert fed(CodexReader(), [STOPPED, *decided(ALLOWED)]).denied == []
    assert fed(CodexReader(), [*decided(ALLOWED), STOPPED]).denied == ["a command"]


def test_the_session_file_of_codex_tells_what_was_asked_and_in_which_order() -> None:
    def output(call: str, text: str) -> bytes:
        payload = {"type": "function_call_output", "call_id": call, "output": text}
        return to_bytes({"timestamp": "2099", "payload": payload})

    from mam.util.encoding import to_bytes

    stopped = output("call_0", "Process exited with code 1\nRead-only file system")
    refused = output("call_1", "exec_command failed: rejected by user")
    for lines, denied in (([stopped, refused], []), ([refused, stopped], ["a command"]), ([refused], [])):
        report = fed(CodexReader(), decided(DENIED))
        read_rollout(lines, "2000", report)
        assert report.denied == denied


def test_a_driver_without_a_worker_refuses_nothing_until_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The next attempt asks again. A refusal would let the model go on without it."""
    monkeypatch.setenv("MAM_SOCKET", str(tmp_path / "gone"))
    monkeypatch.setenv("MAM_JOB_ID", "a" * 32)
    asking = Asking(Printer())
    with ThreadPoolExecutor(1) as pool:
        decision = pool.submit(asking.decide, "call_1", permission_draft("Claude", "run a command", "Bash", {}))
        with pytest.raises(StillWaits):
            decision.result(0.5)
        assert "answered" not in capfd.readouterr().out
        asking.close()
        assert decision.result().is_undecided


def test_a_driver_outlives_sigterm_so_that_its_agent_ends_first(tmp_path: Path) -> None:
    """A keeper sends it to both. If the stdin of Claude Code closes, it takes its question for refused and goes on."""
    os.mkfifo(tmp_path / "gate")
    agent = tmp_path / "agent"
    agent.write_text(
        f"#!{sys.executable}\nimport sys\nsys.stdin.readline()\nprint('{{}}', flush=True)\n"
        f"open({str(tmp_path / 'gate')!r}).read()\nprint('[1]', flush=True)\n"
    )
    agent.chmod(0o700)
    words = [sys.executable, "-m", "mam.work.drivers.claude_code", str(agent)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.close()
        assert driver.stdout.readline() == b"{}\n"
        driver.send_signal(signal.SIGTERM)
        (tmp_path / "gate").write_text("")
        assert driver.stdout.readline() == b"[1]\n"
    assert driver.returncode == 0
