"""What was refused during an attempt, and by whom. Only a refusal that no one decided is a failure of the job."""

from __future__ import annotations

from mam.jobs.question import ANSWERED, DENY, EXPIRED, PERMISSION
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.question import Question


class Denials(Frozen):
    count: int = 0
    decided: frozenset[str] = frozenset()
    """The tools that a person or a rule refused. The agent has the reason, and the checks decide about its work."""
    undecided: tuple[str, ...] = ()
    """The tools that mam refused because no person answered."""


def denials_of(questions: Iterable[Question]) -> Denials:
    """Of the permissions that an agent asked for and whose end it has learned."""
    refused = [one for one in questions if one.kind == PERMISSION and one.answer == DENY]
    return Denials(
        count=len(refused),
        decided=frozenset(_tool(one) for one in refused if one.state == ANSWERED),
        undecided=tuple(dict.fromkeys(_tool(one) for one in refused if one.state == EXPIRED)),
    )


def _tool(question: Question) -> str:
    return question.tool or "a tool"
