"""The lines that a driver prints: those of the agent's own headless program, and two of mam about questions.

The readers of the agent's output understand both, so a job that may ask is judged and shown like any other.
"""

from __future__ import annotations

import os
import threading

from mam.jobs.question import DENY
from mam.util.encoding import to_bytes, write_all
from mam.work.asking.port import ANSWER, WITHDRAWN
from mam.work.reports.questions import ANSWERED, ASKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.jobs.record import Json
    from mam.work.asking.port import Decision

_STDOUT = 1


class Printer:
    """Prints whole lines; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def line(self, message: Json) -> None:
        self.raw(to_bytes(message) + b"\n")

    def raw(self, line: bytes) -> None:
        """A line of the agent's own."""
        with self._lock:
            try:
                write_all(_STDOUT, line)
            except OSError:
                os._exit(1)  # the keeper has closed the pipe: the attempt is over

    def error(self, text: str) -> None:
        """One line on stderr, where the reader looks for the reason of a failure."""
        with self._lock:
            try:
                os.write(2, f"Error: {' '.join(text.split())}\n".encode(errors="replace"))
            except OSError:
                return


def asked_line(call: str, draft: Draft) -> Json:
    """`call` is the agent's name of the tool's use."""
    shown = {"kind": draft.kind, "tool": draft.tool, "text": draft.text, "choices": list(draft.choices)}
    return {"type": ASKED, "call": call, **{name: value for name, value in shown.items() if value}}


def answered_line(call: str, draft: Draft, decision: Decision) -> Json:
    facts: Json = {
        "outcome": decision.outcome, "decided": decision.decided, "tool": draft.tool, "question": decision.question,
        "text": decision.text if decision.outcome == ANSWER else decision.reason,
        "undecided": (decision.is_undecided and decision.outcome in (DENY, WITHDRAWN)) or None,
    }  # fmt: skip
    if draft.tool is None:
        facts["asked"] = draft.text
    return {"type": ANSWERED, "call": call, **{name: value for name, value in facts.items() if value is not None}}
