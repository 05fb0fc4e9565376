"""The lines of a driver about questions (`mam.work.drivers.lines`), as its report reader understands them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.reports.report import Report

ASKED, ANSWERED = "mam.asked", "mam.answered"
"""The types of the lines. No agent prints such a line itself."""

REFUSED_BY_PERSON = "A person refused this"
REFUSED_BY_RULE = "A rule of the user refuses this"
"""How a refusal begins that an agent reports in its own way. Only mam's hook can write it where mam looks for it."""


def is_decided_refusal(message: object) -> bool:
    """Whether a person or a rule decided what the agent reports as refused."""
    return isinstance(message, str) and message.startswith((REFUSED_BY_PERSON, REFUSED_BY_RULE))


def read_question(message: Json, report: Report) -> str | None:
    """A progress text, without what is asked."""
    if message["type"] == ASKED:
        return "asks a person"
    report.asked = None
    tool = message.get("tool")
    if tool is None and message.get("undecided") is True:  # the agent may decide itself
        report.ask(message.get("asked"))
        return "has no answer"
    report.note_answer(
        str(message.get("call")), tool,
        is_denied=message.get("outcome") == "deny", is_undecided=message.get("undecided") is True,
    )  # fmt: skip
    return "has an answer"
