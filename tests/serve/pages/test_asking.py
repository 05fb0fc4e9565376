"""The row of a question shows everything that the tool would get."""

from __future__ import annotations

from typing import Any

import pytest

from mam.jobs.question import Question
from mam.questions import Asked
from mam.serve.pages.asking import QuestionRow, question_row
from tests.unit.jobs import running

EDIT = {"old_string": "a", "new_string": "b"}


def row(given: dict[str, Any]) -> QuestionRow:
    question = Question(
        number=1, attempt=1, kind="permission", text="It changes a file.", tool="Edit", input=given, digest="0" * 64,
        asked_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    return question_row(Asked(job=running(), question=question), 0)


def test_an_edit_is_shown_as_a_change() -> None:
    shown = row({"file_path": "/notes", **EDIT, "replace_all": False})
    assert (shown.path, [line.text for line in shown.change], shown.command) == ("/notes", ["a", "b"], "")


@pytest.mark.parametrize(
    "more",
    [
        {"path": "/etc/passwd"}, {"replace_all": True}, {"mode": "0777"}, {"notebook_path": ["x"]},
        {"oldString": "c"}, {"file_path": ["/a", "/b"]},
    ],
)  # fmt: skip
def test_an_edit_with_more_in_it_is_shown_whole(more: dict[str, Any]) -> None:
    shown = row({"file_path": "/notes", **EDIT, **more})
    assert shown.change == ()
    for name in ("file_path", *EDIT, *more):
        assert f'"{name}"' in shown.command
