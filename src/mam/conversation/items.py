"""The items of a conversation: what an agent said, thought, used, changed, asked and cost, and how it ended.

Every reader produces these and no others. Their text is untrusted: a module that shows it escapes and bounds it.
"""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNNING, DONE, FAILED, DENIED = "running", "done", "failed", "denied"
"""States of a tool's use."""
AGENT, SUBAGENT, USER = "agent", "subagent", "user"
"""Who said a text."""
INFO, WARNING, ERROR = "info", "warning", "error"
"""Levels of a notice."""


class Began(Frozen):
    """The agent's program has started a turn."""

    kind = "began"
    session: str | None = None
    version: str | None = None
    model: str | None = None


class Said(Frozen):
    kind = "said"
    text: str
    by: str = AGENT


class Thought(Frozen):
    kind = "thought"
    text: str


class Used(Frozen):
    """A tool and its outcome. An item with the same id replaces the one before."""

    kind = "used"
    id: str
    tool: str
    """As the agent names it."""
    verb: str
    """The same for every agent: ran, read, edit, write, search, fetch, agent; otherwise the name of the tool."""
    target: str = ""
    state: str = RUNNING
    output: str = ""
    exit_code: int | None = None
    seconds: float | None = None


class Changed(Frozen):
    """A changed file. Lines that the agent did not count are None. It replaces the use of a tool with the same id."""

    kind = "changed"
    id: str
    path: str
    action: str = "edit"
    """edit, create or delete."""
    added: int | None = None
    removed: int | None = None
    patch: str = ""


class Asked(Frozen):
    kind = "asked"
    question: str
    choices: tuple[str, ...] = ()


class Step(Frozen):
    text: str
    state: str
    """pending, active or done."""


class Plan(Frozen):
    """The whole plan; it replaces the one before."""

    kind = "plan"
    steps: tuple[Step, ...] = ()


class Cost(Frozen):
    """What the turn cost. A figure that the agent did not report is None: unknown, not zero."""

    kind = "cost"
    usd: float | None = None
    input: int | None = None
    cached: int | None = None
    output: int | None = None


class Ended(Frozen):
    """The end of a turn."""

    kind = "ended"
    ok: bool
    text: str = ""
    """Why it failed."""


class Notice(Frozen):
    """What the agent's program reports about itself: a retry, a limit, a warning."""

    kind = "notice"
    text: str
    level: str = INFO


class Line(Frozen):
    """A line that the reader does not understand, unchanged."""

    kind = "line"
    text: str
    left_out: int | None = None
    """How many bytes of a very long line are not in the text."""


Item = Began | Said | Thought | Used | Changed | Asked | Plan | Cost | Ended | Notice | Line


def to_json(item: Item) -> dict[str, Any]:
    """For `--json`; schemas/conversation_item.schema.json describes it. Unknown facts are left out."""
    facts: dict[str, Any] = {"kind": item.kind}
    for name, value in item.as_dict().items():
        if isinstance(value, tuple):
            value = [step.as_dict() if isinstance(step, Step) else step for step in value]
        if value is not None and (value != "" or name == "text"):
            facts[name] = value
    return facts
