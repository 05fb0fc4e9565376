"""The report on a turn, read from the agent's output.

The output is untrusted: types are checked, sizes are bounded, and what is not understood is counted and skipped. A
vendor may add new kinds of lines at any time.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod

from mam.events.event import redact
from mam.util.frozen import Frozen
from mam.util.notices import storable_text
from mam.util.strict_json import safe_json
from mam.work.reports.line_buffer import LineBuffer
from mam.work.reports.questions import ANSWERED, ASKED, read_question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

LIMIT, OVERLOAD, LOGIN, BILLING, DECLINED, FAILED = "limit", "overload", "login", "billing", "declined", "failed"
"""Kinds of problems: a usage limit; a vendor that cannot answer now; not logged in; not paid; the model declines;
anything else."""

WORDS_LIMIT = 400
RESULT_LIMIT = 64 * 1024
DENIED_LIMIT = 20
ANSWERED_LIMIT = 10_000
ERROR_LIMIT = 4096
"""How much of a line of stderr is read."""
FRUITLESS_STEPS = 6
REPEATED_ERRORS = 12
"""After so many in a row there is only the look of progress, and mam ends the attempt. More than the agents' own
retries."""
FROM_PRICES = "prices"
"""Marks such a cost in the record; a cost that the agent reported has no mark."""
_MILLION = 1_000_000
_MOST_TOKENS = 2**53
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_GONE = re.compile(r"no conversation found|no rollout found|session not found|thread not found", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLAIN_NAME = re.compile(r"[\w.+-]{1,80}")


class AgentProblem(Frozen):
    kind: str
    text: str
    """As the agent or its vendor reported it."""
    resets_at_ms: int | None = None
    """The end of a limit, if it was reported."""


class Report:
    """What the output has shown so far."""

    def __init__(self) -> None:
        self.session: str | None = None
        """The agent's name of the conversation, by which it can be resumed."""
        self.version: str | None = None
        self.last_message: str | None = None
        self.tokens: dict[str, int] = {}
        self.cost_usd: float | None = None
        self.denied: list[str] = []
        """What the agent wanted to do and was not allowed to do, although no one decided so."""
        self.denials = 0
        """How often a person or a rule refused what the agent wanted to do, which is no failure."""
        self.answered_calls: set[str] = set()
        """The agent's names of the tool uses about which it asked."""
        self._stopped: list[str] = []
        """Those of `denied` that a sandbox stopped. The agent may still ask for them."""
        self.asked: str | None = None
        """The question, if the agent's last tool was the one that asks its user."""
        self.problem: AgentProblem | None = None
        self.is_gone = False
        """Whether the agent reported that it does not have the conversation that it was to resume."""
        self.is_over = False
        """Whether the line that ends a turn has come."""
        self.has_answered = False
        """Whether the model has said or done anything, which proves that it can be reached."""
        self.is_stuck = False
        """Whether the agent keeps retrying without hope of success."""
        self.fruitless_steps = 0
        """Steps in a row in which the model said and did nothing."""
        self.unknown_lines = 0
        """Lines that were not JSON, or of an unknown kind."""
        self._last_error = ""
        self._repeats = 0
        self.last_stderr_line: str | None = None
        """The last line of stderr, where a program reports why it cannot start."""

    def note_progress(self) -> None:
        """The model has said or done something: earlier problems have passed."""
        self.has_answered = True
        self.fruitless_steps = self._repeats = 0

    def note_empty_step(self) -> None:
        """Some agents ask again at once when an answer was empty or broken, without end."""
        self.fruitless_steps += 1
        if self.fruitless_steps >= FRUITLESS_STEPS:
            self._give_up(f"{self.fruitless_steps} answers of the model in a row were empty or broken")

    def note_error(self, text: str) -> None:
        """An error after which the agent tries again."""
        self._repeats = self._repeats + 1 if text == self._last_error else 1
        self._last_error = text
        if self._repeats >= REPEATED_ERRORS:
            self._give_up(f"the same error came {self._repeats} times: {text}")

    def _give_up(self, why: str) -> None:
        self.problem = AgentProblem(kind=OVERLOAD, text=why)
        self.is_stuck, self.is_over = True, False

    def deny(self, what: object) -> None:
        """Each only once, so that repeated denials do not fill the record."""
        name = one_line(what, 80) or "a tool"
        if name not in self.denied and len(self.denied) < DENIED_LIMIT:
            self.denied.append(name)

    def deny_stopped(self, what: object) -> None:
        """The same for what a sandbox stopped, until a decision shows that the agent has asked for it."""
        count = len(self.denied)
        self.deny(what)
        self._stopped += self.denied[count:]

    def note_answer(self, call: str, tool: object, *, is_denied: bool, is_undecided: bool) -> None:
        """A question about a tool's use was closed: by a person or a rule, or undecided."""
        if len(self.answered_calls) < ANSWERED_LIMIT:
            self.answered_calls.add(call)
        self.forget_stopped()
        if is_undecided:
            self.deny(tool)
        elif is_denied:
            self.denials += 1

    def forget_stopped(self) -> None:
        self.denied = [what for what in self.denied if what not in self._stopped]
        self._stopped = []

    def ask(self, question: object) -> None:
        self.asked = one_line(question, 200) or "a question"

    def set_session(self, session: object) -> None:
        """Checked, since it may become a command-line argument later."""
        if isinstance(session, str) and _SESSION.fullmatch(session):
            self.session = session

    def set_last_message(self, text: object) -> None:
        if isinstance(text, str) and text.strip():
            self.last_message = storable_text(text.strip())[-RESULT_LIMIT:]

    def count(self, **tokens: object) -> None:
        """Adds to the counts."""
        for name, number in tokens.items():
            if type(number) is int and 0 <= number < _MOST_TOKENS:
                self.tokens[name] = min(_MOST_TOKENS, self.tokens.get(name, 0) + number)

    def discount(self, **tokens: object) -> None:
        """Subtracts tokens of earlier turns."""
        for name, number in tokens.items():
            if type(number) is int and 0 <= number <= self.tokens.get(name, -1):
                self.tokens[name] -= number

    def cost(self, dollars: object) -> None:
        if isinstance(dollars, bool) or not isinstance(dollars, int | float):
            return
        if math.isfinite(dollars) and 0 <= dollars < _MOST_TOKENS:
            self.cost_usd = round((self.cost_usd or 0.0) + dollars, 9)

    def to_json(self, prices: Json | None = None) -> Json:
        """For the job's record. A cost that the agent did not report is computed from `prices` and marked. Without
        prices it is null beside the tokens: unknown, not zero."""
        reckoned = None if self.cost_usd is not None or prices is None else token_cost(self.tokens, prices)
        facts: Json = {
            "session": self.session, "version": self.version, "tokens": self.tokens or None,
            "cost_usd": self.cost_usd if reckoned is None else reckoned,
            "cost_from": None if reckoned is None else FROM_PRICES,
            "briefed": self.has_answered or None, "gone": (self.is_gone and not self.has_answered) or None,
            "denied": self.denied or None, "denials": self.denials or None, "strange_lines": self.unknown_lines or None,
        }  # fmt: skip
        unknown = {"cost_usd": None} if self.tokens else {}
        return unknown | {name: fact for name, fact in facts.items() if fact is not None}


def token_cost(tokens: dict[str, int], prices: Json) -> float | None:
    """In US dollars; None if the agent did not report its input or output, since the sum would be too low.

    Every reader counts `cached` separately from `input`. `output` includes reasoning for an agent that reports no cost
    (Codex).
    """
    if "input" not in tokens or "output" not in tokens:
        return None
    for_cached = prices["cached"] if "cached" in prices else prices["input"]
    dollars: float = (
        tokens["input"] * prices["input"] + tokens.get("cached", 0) * for_cached + tokens["output"] * prices["output"]
    )
    return round(dollars / _MILLION, 9)


class Reader(ABC):
    """Reads an agent's output as it comes. A subclass reads one format."""

    def __init__(self) -> None:
        self.report = Report()
        self._lines = LineBuffer()
        self._errors = LineBuffer()

    def feed(self, data: bytes) -> list[str]:
        """Progress texts for those who follow the job."""
        return [told for line in self._lines.feed(data) if (told := self._read(line)) is not None]

    def feed_errors(self, data: bytes) -> None:
        """The same for stderr, where some agents print what they print nowhere else."""
        for line in self._errors.feed(data):
            self._complain(line)

    def end(self) -> Report:
        """Call it when there is no more output."""
        self._read(self._lines.rest())
        self._complain(self._errors.rest())
        self.report.unknown_lines += self._lines.left_out
        return self.report

    @abstractmethod
    def read_message(self, message: Json) -> str | None:
        """Reads one line; returns a progress text or None."""

    def read_stderr_line(self, line: str) -> None:  # noqa: B027 - most tell nothing there
        """Reads one line of stderr."""

    def _complain(self, line: bytes) -> None:
        text = _COLOUR.sub("", line[:ERROR_LIMIT].decode("utf-8", "replace"))
        self.report.last_stderr_line = redact(one_line(text, 200) or "") or self.report.last_stderr_line
        self.report.is_gone = self.report.is_gone or _GONE.search(text) is not None
        self.read_stderr_line(text)

    def _read(self, line: bytes) -> str | None:
        if not line.strip():
            return None
        try:
            message = safe_json(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.report.unknown_lines += 1
            return None
        try:
            if message.get("type") in (ASKED, ANSWERED):
                return read_question(message, self.report)
            return self.read_message(message)
        except Exception:  # a vendor may send anything; a line that is not understood must not stop the reader
            self.report.unknown_lines += 1
            return None


def get_path(message: object, *path: str) -> object:
    """The value at this path, or None if something on the way has another type."""
    for name in path:
        message = message.get(name) if isinstance(message, dict) else None
    return message


def get_list(message: object, *path: str) -> list[object]:
    found = get_path(message, *path)
    return found if isinstance(found, list) else []


def one_line(text: object, limit: int = WORDS_LIMIT) -> str | None:
    """The text as one line; None if there is none."""
    if not isinstance(text, str):
        return None
    line = " ".join(storable_text(text).split())
    return (line if len(line) <= limit else f"{line[: limit - 1]}…") or None


def tool_summary(tool: object, path: object = None) -> str:
    """A tool's use in a few words, without commands and absolute paths, since events leave this host."""
    name = one_line(tool, 60) or "a tool"
    last = path.rsplit("/", 1)[-1] if isinstance(path, str) else ""
    return f"{name} {last}" if _PLAIN_NAME.fullmatch(last) else name
