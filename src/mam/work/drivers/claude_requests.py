"""What Claude Code asks, over its stdin and stdout or in a hook, and the answers as it expects them. Pure."""

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
"""The hooks."""
_DOES = {
    "Bash": "run a command", "Write": "write a file", "Edit": "change a file", "NotebookEdit": "change a notebook",
    "WebFetch": "read a web page", "WebSearch": "search the web", "ExitPlanMode": "begin with its plan",
}  # fmt: skip


def permission_of(request: object) -> Draft:
    tool, given = str(get_path(request, "tool_name")), input_of(request)
    return permission_draft(AGENT, _DOES.get(tool, f"use {tool}"), tool, given)


def questions_of(request: object) -> list[Draft]:
    return [
        question_draft(get_path(one, "question"), [get_path(it, "label") for it in get_list(one, "options")])
        for one in get_list(input_of(request), "questions")
    ]


def input_of(request: object) -> Json:
    """A hook and a request name it differently."""
    given = get_path(request, "tool_input")
    given = get_path(request, "input") if given is None else given
    return given if isinstance(given, dict) else {"input": given}


def with_answers(request: object, decisions: list[Decision]) -> Json | None:
    """The input of the tool for questions; with the answers in it, it shows no dialog. None if one is not answered."""
    asked = [str(get_path(one, "question")) for one in get_list(input_of(request), "questions")]
    if not decisions or not all(decision.text for decision in decisions):
        return None
    answers = {question: decision.text for question, decision in zip(asked, decisions, strict=False)}
    return {**input_of(request), "answers": answers}


# -- over stdin and stdout -------------------------------------------------------------------------------------------


def permission_reply(request: object, decision: Decision) -> Json:
    """A decision counts once: no rule goes into the settings. A refusal that no one decided ends the turn, because the
    job cannot succeed any more."""
    if decision.is_allowed:
        return {"behavior": "allow", "updatedInput": input_of(request)}
    denied: Json = {"behavior": "deny", "message": refusal(decision)}
    return {**denied, "interrupt": True} if decision.is_undecided else denied


def questions_reply(request: object, decisions: list[Decision]) -> Json:
    updated = with_answers(request, decisions)
    if updated is not None:
        return {"behavior": "allow", "updatedInput": updated}
    return {"behavior": "deny", "message": unanswered(decisions)}


def unanswered(decisions: list[Decision]) -> str:
    return next((refusal(one) for one in decisions if not one.text), "There is no answer.")


# -- hooks -----------------------------------------------------------------------------------------------------------


def permission_output(decision: Decision) -> Json:
    if decision.is_allowed:
        return _output(PERMISSION, {"decision": {"behavior": "allow"}})
    denied: Json = {"behavior": "deny", "message": refusal(decision)}
    return _output(PERMISSION, {"decision": denied})


def questions_output(hook: object, decisions: list[Decision]) -> Json:
    updated = with_answers(hook, decisions)
    if updated is not None:
        return _output(BEFORE_TOOL, {"permissionDecision": "allow", "updatedInput": updated})
    return _output(BEFORE_TOOL, {"permissionDecision": "deny", "permissionDecisionReason": unanswered(decisions)})


def _output(event: str, fields: Json) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
