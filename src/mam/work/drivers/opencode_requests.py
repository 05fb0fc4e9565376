"""The requests of `opencode serve` as questions, and the answers as it expects them. Pure."""

from __future__ import annotations

from mam.work.drivers.drafts import permission_draft, question_draft, refusal
from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.jobs.record import Json
    from mam.work.asking.port import Decision

AGENT = "OpenCode"
_DOES = {
    "edit": "change a file", "bash": "run a command", "webfetch": "read a web page",
    "external_directory": "use files outside of the job's directory",
}  # fmt: skip


def call_of(asked: object) -> str:
    return str(get_path(asked, "tool", "callID") or get_path(asked, "id"))


def permission_of(asked: object) -> Draft:
    tool = str(get_path(asked, "permission") or "a tool")
    metadata = get_path(asked, "metadata")
    given: Json = dict(metadata) if isinstance(metadata, dict) else {}
    patterns = get_list(asked, "patterns")
    if patterns and patterns != [given.get("command")]:
        given["patterns"] = patterns
    return permission_draft(AGENT, _DOES.get(tool, f"use {tool}"), tool, given)


def permission_reply(decision: Decision) -> Json:
    """A decision counts once. OpenCode ends the turn after a refusal without a message: no one decided then, and the
    job cannot succeed any more."""
    if decision.is_allowed:
        return {"reply": "once"}
    return {"reply": "reject"} if decision.is_undecided else {"reply": "reject", "message": refusal(decision)}


def questions_of(asked: object) -> list[Draft]:
    return [
        question_draft(get_path(one, "question"), [get_path(it, "label") for it in get_list(one, "options")])
        for one in get_list(asked, "questions")
    ]


def answers_of(decisions: list[Decision]) -> Json | None:
    """None if a question has no answer."""
    answers = [[decision.text] for decision in decisions if decision.text]
    return {"answers": answers} if answers and len(answers) == len(decisions) else None
