"""The hooks of Claude Code that ask, as questions; and the answers as it expects them. Pure."""

from __future__ import annotations

from mam.work.drivers.drafts import permission_draft, question_draft, refusal
from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.jobs.record import Json
    from mam.work.asking.port import Decision

AGENT = "Claude Code"
QUESTION_TOOL = "AskUserQuestion"
PERMISSION, BEFORE_TOOL = "PermissionRequest", "PreToolUse"
_DOES = {
    "Bash": "run a command", "Write": "write a file", "Edit": "change a file", "NotebookEdit": "change a notebook",
    "WebFetch": "read a web page", "WebSearch": "search the web", "ExitPlanMode": "begin with its plan",
}  # fmt: skip


def permission_of(hook: Json) -> Draft:
    tool, given = str(hook.get("tool_name")), hook.get("tool_input")
    shown: Json = given if isinstance(given, dict) else {"input": given}
    return permission_draft(AGENT, _DOES.get(tool, f"use {tool}"), tool, shown)


def permission_answer(decision: Decision) -> Json:
    """A decision counts once: no rule goes into the settings. A refusal that no one decided ends the turn, because the
    job cannot succeed any more."""
    if decision.is_allowed:
        return _output(PERMISSION, {"decision": {"behavior": "allow"}})
    denied: Json = {"behavior": "deny", "message": refusal(decision)}
    return _output(PERMISSION, {"decision": {**denied, "interrupt": True} if decision.is_undecided else denied})


def questions_of(hook: Json) -> list[Draft]:
    return [
        question_draft(get_path(one, "question"), [get_path(it, "label") for it in get_list(one, "options")])
        for one in get_list(hook, "tool_input", "questions")
    ]


def questions_answer(hook: Json, decisions: list[Decision]) -> Json:
    """The tool itself would show a dialog; with the answers in its input it does not."""
    asked = [str(get_path(one, "question")) for one in get_list(hook, "tool_input", "questions")]
    refused = next((one for one in decisions if not one.text), None)
    if refused is not None:
        return _output(BEFORE_TOOL, {"permissionDecision": "deny", "permissionDecisionReason": refusal(refused)})
    answers = {question: decision.text for question, decision in zip(asked, decisions, strict=False)}
    given = hook.get("tool_input")
    updated = {**(given if isinstance(given, dict) else {}), "answers": answers}
    return _output(BEFORE_TOOL, {"permissionDecision": "allow", "updatedInput": updated})


def _output(event: str, fields: Json) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
