"""The lines of a conversation on a terminal, in the style of the agents' own displays. Pure.

What a tool returned and what an agent thought are folded to a part of a line; `full` unfolds them.
"""

from __future__ import annotations

from mam.cli.render.prose import cell_length, cut, fit, fold, prose, safe, wrap
from mam.cli.render.question import whole_lines
from mam.conversation.items import (
    DENIED,
    ERROR,
    FAILED,
    INFO,
    RUNNING,
    SUBAGENT,
    USER,
    Asked,
    Began,
    Changed,
    Cost,
    Ended,
    Line,
    Notice,
    Plan,
    Said,
    Thought,
    Used,
)
from mam.util.figures import cost_words, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.cli.render.prose import StyledLine
    from mam.conversation.items import Item
    from mam.jobs.question import Question

WIDTH_MOST = 110
VERB_WIDTH = 6
FOLDED_LINES = 4
"""Lines of a failed tool's output."""
RESULT_MOST = 36
TEXT_LIMIT, LINE_ROWS = 20_000, 6
"""Characters of one text, and rows of a line that is not understood."""
SHORT_SECONDS = 1.0
RUNNING_SHOWN = 5
"""Lines for tools that run at the same time."""
_NOTICES = {INFO: ("·", "dim"), ERROR: ("✗", "red")}
_STEPS = {"done": ("✓", "green", "dim"), "active": ("▸", "yellow", "bold"), "pending": ("○", "dim", "")}


class ConversationPage:
    """Formats items, one after the other. It keeps no more than it needs to leave out repetitions."""

    def __init__(self, width: int, *, workdir: str | None = None, full: bool = False, with_end: bool = True) -> None:
        """Paths in `workdir` are shown relative to it. Without `with_end`, a good end and the cost are left to the
        caller's own closing line."""
        self.width = max(20, min(width, WIDTH_MOST))
        self._workdir = workdir.rstrip("/") + "/" if workdir else None
        self._full = full
        self._with_end = with_end
        self._error = ""
        self._cost: Cost | None = None
        self._just_asked: str | None = None
        """The text of the question that is the last item."""
        self._asked_ahead: str | None = None
        """The text of a question of the job that the agent's output does not have yet."""

    def lines(self, item: Item) -> list[StyledLine]:
        lines = [fit(line, self.width) for line in self._lines(item)]
        if not (isinstance(item, Used) and item.state == RUNNING):
            self._just_asked = item.question if isinstance(item, Asked) else None
        return lines

    def _lines(self, item: Item) -> list[StyledLine]:
        match item:
            case Said():
                return self._said(item)
            case Used():
                return self._used(item)
            case Changed():
                return self._changed(item)
            case Thought():
                return self._thought(item)
            case Notice():
                return self._notice(item)
            case Plan():
                return _plan(item, self.width)
            case Asked():
                return self._asked(item)
            case Line():
                return self._line(item)
            case Began():
                facts = [safe(fact) for fact in (item.model, item.version) if fact]
                return [[(f"  {cut(' · '.join(facts), self.width - 2)}", "dim")]] if facts else []
            case Cost():
                self._cost = item
                return []
            case Ended():
                return self._ended(item)

    def question(self, question: Question) -> list[StyledLine]:
        """A question of the job, whole. The agent's output may have its text already, or will."""
        width = self.width - 6
        if question.text == self._just_asked:
            return _indented("      ", whole_lines(question.replace(text="", choices=[]), width)[1:])
        self._asked_ahead = question.text
        return _indented("  ? ", whole_lines(question, width), "bold magenta")

    def row(self, mark: tuple[str, str], verb: str, target: str, right: StyledLine) -> StyledLine:
        """A tool: what was done on what, and at the right edge how it went."""
        verb = cut(safe(verb), self.width // 3).ljust(VERB_WIDTH - 1)
        taken = sum(cell_length(text) for text, _ in right)
        room = self.width - 5 - len(verb) - (taken + 2 if right else 0)
        target = cut(safe(self._short(target)), room)
        gap = " " * (room - cell_length(target) + 2) if right else ""
        return [("  ", ""), mark, (f" {verb} ", "bold" if mark[1] == "red" else ""), (target, ""), (gap, ""), *right]

    def _said(self, item: Said) -> list[StyledLine]:
        if not item.text.strip():
            return []
        indent, style = {SUBAGENT: ("  ┆ ", "dim"), USER: ("  › ", "bold")}.get(item.by, ("  ", ""))
        text, more = self._bounded(item.text)
        return _indented(indent, [*prose(text, self.width - len(indent), style), *more])

    def _thought(self, item: Thought) -> list[StyledLine]:
        lines = [line for line in item.text.split("\n") if line.strip()] or ["…"]
        if self._full:
            return _indented("  ∴ ", prose(self._bounded(item.text)[0], self.width - 4, "dim italic"))
        more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
        return [
            [
                ("  ∴ ", "dim"),
                (cut(safe(lines[0].strip(" *#")), self.width - 4 - len(more)), "dim italic"),
                (more, "dim"),
            ]
        ]

    def _used(self, item: Used) -> list[StyledLine]:
        output = [line for line in item.output[-TEXT_LIMIT:].split("\n") if line.strip()]
        right: StyledLine = []
        mark = ("▸", "cyan")
        if item.state == RUNNING:
            mark, right = ("▹", "yellow"), [("…", "dim")]
        elif item.state == DENIED:
            mark, right = ("⊘", "red"), [("denied", "red")]
        elif item.state == FAILED or item.exit_code:
            mark = ("✗", "red")
            right = [("failed" if item.exit_code is None else f"exit {item.exit_code}", "red")]
        elif output:
            right = [(self._result(item.verb, output, item.output.count("\n")), "dim")]
        if item.seconds is not None and item.seconds >= SHORT_SECONDS:
            right += [("  ", ""), (duration(item.seconds), "dim")]
        lines = [self.row(mark, item.verb, _first_line(item.target), right)]
        if self._full:
            return lines + self._block(item.output)
        return lines + (self._tail(output) if mark[1] == "red" else [])

    def _result(self, verb: str, output: list[str], breaks: int) -> str:
        """The last line of a command's output, if it is short; otherwise the number of lines."""
        last = safe(output[-1].strip())
        if verb == "ran" and cell_length(last) <= min(RESULT_MOST, self.width // 3):
            return last
        count = max(len(output), breaks)
        return "1 line" if count == 1 else f"{count:,} lines"

    def _tail(self, output: list[str]) -> list[StyledLine]:
        more = len(output) - FOLDED_LINES
        lines: list[StyledLine] = [[(f"        … {more} lines before", "dim")]] if more > 0 else []
        return lines + [
            [(f"        {cut(safe(line.rstrip()), self.width - 8)}", "dim")] for line in output[-FOLDED_LINES:]
        ]

    def _block(self, text: str) -> list[StyledLine]:
        text, more = self._bounded(text.strip("\n"))
        found = [piece for line in text.split("\n") if line for piece in fold(safe(line), self.width - 8)]
        return _indented("        ", [[(piece, "dim")] for piece in found] + more)

    def _changed(self, item: Changed) -> list[StyledLine]:
        right: StyledLine = [("new", "dim")] if item.action == "create" else []
        right += [("deleted", "red")] if item.action == "delete" else []
        for count, sign, style in ((item.added, "+", "green"), (item.removed, "-", "red")):
            if count or (count == 0 and item.action == "edit"):
                right += [(" ", "")] * bool(right) + [(f"{sign}{count:,}", style)]
        verb = {"create": "write", "delete": "delete"}.get(item.action, "edit")
        lines = [self.row(("▸", "green"), verb, item.path, right)]
        if self._full and item.patch:
            for line in self._bounded(item.patch)[0].split("\n"):
                style = {"+": "green", "-": "red"}.get(line[:1], "dim")
                lines.append([(f"        {cut(safe(line), self.width - 8)}", style)])
        return lines

    def _notice(self, item: Notice) -> list[StyledLine]:
        mark, style = _NOTICES.get(item.level, ("!", "yellow"))
        if item.level == ERROR:
            self._error = item.text
        text, more = self._bounded(item.text)
        return _indented(f"  {mark} ", [*prose(text, self.width - 4, style), *more], style)

    def _asked(self, item: Asked) -> list[StyledLine]:
        ahead, self._asked_ahead = self._asked_ahead, None
        if item.question == ahead:
            return []
        lines = _indented(
            "  ? ", prose(self._bounded(item.question)[0] or "a question", self.width - 4), "bold magenta"
        )
        return lines + [[(f"      {cut(safe(choice), self.width - 6)}", "")] for choice in item.choices]

    def _line(self, item: Line) -> list[StyledLine]:
        rows = wrap([(safe(item.text[:TEXT_LIMIT]), "")], self.width, "  ", "  ")
        lines = rows if self._full else rows[:LINE_ROWS]
        if len(lines) < len(rows) or len(item.text) > TEXT_LIMIT or item.left_out:
            size = (item.left_out or 0) + len(item.text.encode("utf-8", "replace"))
            lines.append([(f"  … the line has {size:,} bytes; --raw prints them", "dim")])
        return lines

    def _ended(self, item: Ended) -> list[StyledLine]:
        figures = cost_words(self._cost.as_dict()) if self._cost is not None else []
        self._cost = None
        if item.ok:
            return [[("  ✓ ", "green"), (" · ".join(["the turn ended", *figures]), "dim")]] if self._with_end else []
        text = "" if item.text.strip() == self._error.strip() else item.text
        lines = _indented("  ✗ ", prose(self._bounded(text)[0], self.width - 4, "red"), "red") if text else []
        return lines + ([[(f"  {' · '.join(figures)}", "dim")]] if figures and self._with_end else [])

    def _bounded(self, text: str) -> tuple[str, list[StyledLine]]:
        if len(text) <= TEXT_LIMIT or self._full:
            return text, []
        return text[:TEXT_LIMIT], [[(f"… {len(text) - TEXT_LIMIT:,} more characters; --full shows them", "dim")]]

    def _short(self, target: str) -> str:
        return target.removeprefix(self._workdir) if self._workdir is not None else target


class ConversationView:
    """The lines of the items so far: those that will not change, and those of tools that still run."""

    def __init__(self, page: ConversationPage) -> None:
        self._page = page
        self._running: dict[str, Used] = {}

    def settle(self, items: Iterable[Item]) -> list[StyledLine]:
        """The lines of these items that will not change."""
        lines: list[StyledLine] = []
        for item in items:
            if isinstance(item, Used) and item.state == RUNNING:
                self._running[item.id] = item
                continue
            if isinstance(item, Used | Changed):
                self._running.pop(item.id, None)
            lines += self._page.lines(item)
        return lines

    def running(self) -> list[StyledLine]:
        """One line for each of the latest tools that run."""
        shown = list(self._running.values())[-RUNNING_SHOWN:]
        return [line for used in shown for line in self._page.lines(used)[:1]]


def _plan(item: Plan, width: int) -> list[StyledLine]:
    done = sum(step.state == "done" for step in item.steps)
    lines: list[StyledLine] = [[("  plan ", "bold"), (f"{done} of {len(item.steps)} done", "dim")]]
    for step in item.steps:
        mark, colour, style = _STEPS.get(step.state, _STEPS["pending"])
        lines.append([(f"    {mark} ", colour), (cut(safe(step.text), width - 6), style)])
    return lines


def _indented(first: str, lines: list[StyledLine], style: str = "dim") -> list[StyledLine]:
    rest = " " * len(first) if first.strip() != "┆" else first
    return [[(rest if at else first, style if first.strip() else ""), *line] for at, line in enumerate(lines)]


def _first_line(text: str) -> str:
    first, _, more = text.strip().partition("\n")
    return f"{first.rstrip()} …" if more.strip() else first
