"""The conversation on a terminal: what a person sees, and that hostile text is harmless."""

from __future__ import annotations

import re

import pytest

from mam.cli.render.ansi import to_ansi
from mam.cli.render.conversation import ConversationPage
from mam.cli.render.prose import cell_length, cut, prose
from mam.conversation.items import (
    DENIED,
    DONE,
    FAILED,
    RUNNING,
    Asked,
    Began,
    Changed,
    Cost,
    Ended,
    Item,
    Line,
    Notice,
    Plan,
    Said,
    Step,
    Thought,
    Used,
)
from mam.jobs.question import Question

COMMAND = Used(id="1", tool="Bash", verb="ran", target="pytest tests --count 40", state=DONE, output="..\n38 passed\n")
ASKED = Question(
    number=1, attempt=1, kind="permission", text="May I?", tool="Bash", input={"command": "git push"}, digest="0" * 64,
    asked_at="2026-06-19T09:30:00Z",
)  # fmt: skip
HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \u202eevil\u2066 \x9b1;1H \r\b\x00 漢字 👩‍💻 " + "x" * 3000
MOVING = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EVERY_KIND: list[Item] = [
    Began(session=HOSTILE, model=HOSTILE, version=HOSTILE),
    Said(text=HOSTILE),
    Said(text=f"# {HOSTILE}\n- {HOSTILE}\n1. {HOSTILE}\n```\n{HOSTILE}\n```\n`{HOSTILE}` **{HOSTILE}**", by="subagent"),
    Said(text=HOSTILE, by="user"),
    Thought(text=HOSTILE),
    *[Used(id="1", tool=HOSTILE, verb=HOSTILE, target=HOSTILE, state=state, output=HOSTILE, exit_code=code, seconds=9e9)
      for state in (RUNNING, DONE, FAILED, DENIED) for code in (None, 0, 1)],
    Changed(id="1", path=HOSTILE, added=10**9, removed=10**9, patch=f"+{HOSTILE}\n-{HOSTILE}"),
    Asked(question=HOSTILE, choices=(HOSTILE,)),
    Plan(steps=(Step(text=HOSTILE, state="done"), Step(text=HOSTILE, state="?"))),
    Notice(text=HOSTILE, level="error"),
    Line(text=HOSTILE, left_out=5),
    Cost(usd=1e9, input=10**12),
    Ended(ok=False, text=HOSTILE),
]  # fmt: skip


def shown(*items: Item, width: int = 80, full: bool = False, workdir: str | None = None) -> list[str]:
    page = ConversationPage(width, full=full, workdir=workdir)
    return [to_ansi(line, False) for item in items for line in page.lines(item)]


class TestRows:
    def test_a_tool_has_its_outcome_at_the_right_edge(self) -> None:
        (row,) = shown(COMMAND.replace(seconds=12.4))
        assert row.startswith("  ▸ ran   pytest tests --count 40   ")
        assert row.endswith("38 passed  12 s")
        assert len(row) == 80

    def test_a_long_result_is_a_number_of_lines(self) -> None:
        (row,) = shown(COMMAND.replace(output="x\n" * 40 + "y" * 60 + "\n"))
        assert row.endswith("41 lines")

    def test_a_tool_that_failed_shows_the_end_of_its_output(self) -> None:
        output = "".join(f"line {at}\n" for at in range(9))
        row, before, *rest = shown(COMMAND.replace(state=FAILED, exit_code=2, output=output))
        assert row.startswith("  ✗ ran")
        assert row.endswith("exit 2")
        assert (before, rest[0], rest[-1]) == ("        … 5 lines before", "        line 5", "        line 8")

    def test_full_unfolds_it(self) -> None:
        assert shown(COMMAND, full=True)[1:] == ["        ..", "        38 passed"]

    def test_a_denied_tool_shows_the_reason(self) -> None:
        (row, why) = shown(COMMAND.replace(state=DENIED, output="not allowed"))
        assert row.startswith("  ⊘ ran")
        assert row.endswith("denied")
        assert why.strip() == "not allowed"

    def test_a_changed_file_is_named_from_the_directory_of_the_job(self) -> None:
        (row,) = shown(Changed(id="1", path="/home/anna/shop/a/b.py", added=12, removed=3), workdir="/home/anna/shop")
        assert row.startswith("  ▸ edit  a/b.py  ")
        assert row.endswith("+12 -3")

    def test_a_command_of_several_lines_shows_the_first(self) -> None:
        assert shown(COMMAND.replace(target="a\nb\n", output="")) == ["  ▸ ran   a …"]

    def test_a_thought_is_folded(self) -> None:
        assert shown(Thought(text="**First.**\n\nSecond.\n")) == ["  ∴ First. (+1 lines)"]
        assert len(shown(Thought(text="First.\n\nSecond.\n"), full=True)) == 3


class TestEnds:
    def test_the_cost_is_in_the_last_line(self) -> None:
        cost = Cost(usd=0.31, input=40_000, output=900)
        assert shown(cost, Ended(ok=True)) == ["  ✓ the turn ended · 41k tokens · $0.31"]

    def test_an_error_is_shown_once(self) -> None:
        lines = shown(Notice(text="no credit", level="error"), Ended(ok=False, text="no credit"))
        assert lines == ["  ✗ no credit"]


class TestQuestionsOfTheJob:
    """A page gets them from the record, and their texts from the agent's output too, in any order."""

    def test_the_conversation_that_was_first_has_only_the_rest_added(self) -> None:
        page = ConversationPage(80)
        page.lines(Asked(question="May I?"))
        page.lines(COMMAND.replace(state=RUNNING))
        assert [to_ansi(line, False) for line in page.question(ASKED)] == ["      Bash:", "      git push"]

    def test_the_question_that_was_first_is_not_repeated(self) -> None:
        page = ConversationPage(80)
        assert [to_ansi(line, False) for line in page.question(ASKED)] == ["  ? May I?", "    Bash:", "    git push"]
        assert page.lines(Asked(question="May I?")) == []
        assert page.lines(Asked(question="May I?")) != []  # the next one

    def test_hostile_text_is_escaped_and_nothing_is_cut(self) -> None:
        question = ASKED.replace(text=HOSTILE, input={"command": HOSTILE}, choices=[HOSTILE])
        lines = [to_ansi(line, False) for line in ConversationPage(80).question(question)]
        assert all(cell_length(line) <= 80 and not MOVING.search(line) for line in lines)
        assert "".join(lines).count("x") >= 3 * 3000


class TestHostileText:
    @pytest.mark.parametrize("width", [20, 60, 80, 120])
    @pytest.mark.parametrize("full", [False, True])
    def test_no_line_is_too_wide_and_nothing_moves_the_cursor(self, width: int, full: bool) -> None:
        page = ConversationPage(width, full=full)
        lines = [to_ansi(line, True) for item in EVERY_KIND for line in page.lines(item)]
        assert len(lines) > len(EVERY_KIND)
        for line in lines:
            plain = re.sub(r"\x1b\[[0-9;]+m", "", line)
            assert not MOVING.search(plain)
            assert cell_length(plain) <= width

    def test_a_flood_of_text_is_bounded(self) -> None:
        lines = shown(Said(text="word " * 400_000), Line(text="x" * 1_000_000), Notice(text="y" * 1_000_000))
        assert len(lines) < 1000
        assert sum("more" in line or "--raw" in line for line in lines) == 3

    @pytest.mark.parametrize(
        "text", ["*" * 20_000, "`" * 20_000, "**a" * 5_000, "- " * 9_000, " " * 20_000, "#" * 9_000]
    )
    def test_markdown_takes_linear_time(self, text: str) -> None:
        assert prose(text, 80) is not None


def test_text_is_cut_by_columns() -> None:
    assert [cut("漢字漢字", width) for width in (8, 7, 4, 1, 0)] == ["漢字漢字", "漢字漢…", "漢…", "…", ""]


def test_lists_hang_and_code_is_not_wrapped() -> None:
    text = "- one two three four\n\n```py\nx = 1  # a b c d e f g\n```"
    lines = [to_ansi(line, False) for line in prose(text, 20)]
    assert lines == ["• one two three four", "", "│ x = 1  # a b c d e", "│  f g"]
