"""The lines of a driver about questions (`mam.work.drivers.lines`), as its report reader understands them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.reports.report import Report

ASKED, ANSWERED = "mam.asked", "mam.answered"
"""The types of the lines. No agent prints such a line itself."""


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
