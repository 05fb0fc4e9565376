"""What a person reads of a question: everything, and nothing that could fool them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mam.cli.render.question import what_always_covers, whole_lines
from mam.cli.render.text import json_safe
from mam.jobs.asked_text import asked_lines, short_text
from mam.jobs.question import Question


def question(given: dict[str, Any] | None = None, text: str = "It wants it.", tool: str | None = "Tool") -> Question:
    return Question(
        number=1, attempt=1, kind="permission", text=text, tool=tool, input=given, digest="0" * 64,
        asked_at="2026-01-01T00:00:00Z",
    )  # fmt: skip


def shown(given: dict[str, Any]) -> list[str]:
    return [f"{line.mark}{line.text}" for line in asked_lines(question(given))][2:]


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"command": "make\ntest", "timeout": 5}, [" make", " test", " timeout: 5"]),
        ({"command": ["git", "commit", "-m", "a b"]}, [" git commit -m 'a b'"]),
        ({"command": [1], "x": {"y": []}}, [" command: [", "   1", " ]", " x: {", '   "y": []', " }"]),
        (
            {"file_path": "/a", "old_string": "x\ny", "new_string": "z", "replace_all": True},
            [" /a", "-x", "-y", "+z", " replace_all: true"],
        ),
        ({"filePath": "/a", "content": "x\n"}, [" /a", "+x", "+"]),
        ({"patch": "-a\n+b"}, [" -a", " +b"]),
        ({"url": "https://x", "prompt": "read it"}, [" url: https://x", " prompt: read it"]),
        ({}, []),
    ],
)
def test_the_input_is_shown_exactly(given: dict[str, Any], lines: list[str]) -> None:
    assert shown(given) == lines


def test_a_list_says_that_there_is_more() -> None:
    assert short_text(question({"command": "git push"})) == "Tool: git push"
    assert short_text(question({"command": "git push\nrm -rf /"})) == "Tool: git push …"
    assert short_text(question(None, tool=None)) == "It wants it."


def test_long_lines_are_folded_and_never_cut() -> None:
    given = {"command": "echo " + "x" * 500 + "\x1b[2J\u202e終" + "y" * 500}
    lines = ["".join(text for text, _ in line) for line in whole_lines(question(given), 60)]
    assert max(map(len, lines)) <= 60
    joined = "".join(line.removeprefix("  ↳ ") for line in lines)
    assert "echo " + "x" * 500 + "\\x1b[2J\\u202e終" + "y" * 500 in joined
    assert all(line.isprintable() for line in lines)


def test_always_says_what_it_covers() -> None:
    assert "this command" in what_always_covers(question({"command": "make test"}))
    assert "only this once" in what_always_covers(question({"command": "make; x"}))
    assert "the same file" in what_always_covers(question({"file_path": "/a", "content": "x"}))
    assert "same use" in what_always_covers(question({"query": "x"}))


@pytest.mark.parametrize(
    ("hidden", "seen"),
    [
        ("rm \u202e\x1b[2J", r"rm \u202e\x1b[2J"), ("a\u2060b\u00adc\u3164d", r"a\u2060b\xadc\u3164d"),
        ("ls \U000e0072\U000e006d", r"ls \U000e0072\U000e006d"), ("\u034f\u115f\ufff9", r"\u034f\u115f\ufff9"),
        ("Kürze 日本 \U0001f642", "Kürze 日本 \U0001f642"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_escaped(hidden: str, seen: str) -> None:
    lines = ["".join(text for text, _ in line) for line in whole_lines(question({"command": hidden}), 80)]
    assert seen in lines
    as_json = json.dumps({"command": hidden}, ensure_ascii=False)
    assert json.loads(json_safe(as_json)) == {"command": hidden}
    assert not any(letter in json_safe(as_json) for letter in hidden if letter not in seen)
