"""The rules for ids, names and other input."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mam.errors import BadInput
from mam.jobs import input_rules
from mam.jobs.draft import draft_job

CLAIM_ID = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")
CONTRACT_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@given(st.text(max_size=70) | st.from_regex(r"[A-Za-z0-9_-]{1,66}", fullmatch=True))
@example("../x")
@example("a/b")
@example("a\0")
@example("abc\n")
@example("-leading")
@example("_leading")
@example("")
@example(".")
@example("a.json")
@example("ａｂｃ")
@example("аbc")
@example("١٢٣")
@example("ſ")
@example("\u212a")
@example("a" * 64)
@example("a" * 65)
def test_an_id_is_accepted_exactly_as_the_contract_defines(text: str) -> None:
    assert input_rules.is_claim_id(text) == bool(CLAIM_ID.match(text))
    assert input_rules.is_job_id(text) == bool(CONTRACT_ID.match(text))
    if not input_rules.is_job_id(text):
        with pytest.raises(BadInput, match="not a job id") as refused:
            input_rules.check_job_id(text)
        assert refused.value.exit_code == 2
        assert len(str(refused.value)) < 500


@given(st.from_regex(CONTRACT_ID, fullmatch=True))
def test_no_accepted_id_leads_out_of_a_directory_or_looks_like_an_option(text: str) -> None:
    assert not set("/\\.\0\n ") & set(text)
    assert not text.startswith("-")


@given(st.text(min_size=1, max_size=300))
def test_a_name_is_one_visible_line_of_bounded_size(text: str) -> None:
    try:
        input_rules.check_name("label", text)
    except BadInput:
        return
    assert text.strip()
    assert len(text.encode()) <= input_rules.NAME_LIMIT
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text)


@pytest.mark.parametrize(
    "name", ["", "   ", "\t", "a\0b", "a\nb", "\x1b[31m", "a\x7f", "a\x9b", "\ud800", "x" * 257, "é" * 129]
)
def test_these_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="label"):
        input_rules.check_name("label", name)


@pytest.mark.parametrize("name", ["tmux:claude", "한국어", "a b", "x" * 256, "-dash", "../x", "😀"])
def test_these_names_are_fine(name: str) -> None:
    assert input_rules.check_name("label", name) == name


@pytest.mark.parametrize("prompt", ["", " \n\t ", "a\0b", "\udfff"])
def test_these_prompts_are_refused(prompt: str) -> None:
    with pytest.raises(BadInput, match="prompt"):
        input_rules.check_prompt(prompt)


def test_a_prompt_of_a_megabyte_works_and_one_of_sixty_four_is_refused() -> None:
    input_rules.check_prompt("x" * 2**20)
    input_rules.check_prompt("x" * input_rules.TEXT_LIMIT)
    for size in (input_rules.TEXT_LIMIT + 1, 64 * 2**20):
        with pytest.raises(BadInput, match="bytes"):
            input_rules.check_prompt("x" * size)


def test_the_limit_counts_bytes_and_not_characters() -> None:
    input_rules.check_text("reason", "é" * 4, 8)
    with pytest.raises(BadInput, match="reason"):
        input_rules.check_text("reason", "é" * 5, 9)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "~/x", "~root/x", "a\0b", "x" * 4097]
)
def test_an_artifact_outside_the_directory_is_refused(path: str) -> None:
    with pytest.raises(BadInput):
        input_rules.check_artifact(path)


@pytest.mark.parametrize("path", ["x", "a/b.md", "...", "a..b", "..a/b", "-x", "한글.md", "a b"])
def test_an_artifact_inside_is_taken_as_it_is(path: str) -> None:
    assert input_rules.check_artifact(path) == path


@pytest.mark.parametrize(("number", "fine"), [(0, True), (-1, False), (2**31 - 1, True), (2**31, False)])
def test_counts_are_bounded(number: int, fine: bool) -> None:
    if fine:
        assert input_rules.check_count("timeout", number) == number
    else:
        with pytest.raises(BadInput, match="timeout must be between"):
            input_rules.check_count("timeout", number)


@pytest.mark.parametrize(
    ("seconds", "fine"), [(0, True), (0.5, True), (2**31 - 1, True), (2**31, False), (-0.1, False)]
)
def test_durations_are_bounded(seconds: float, fine: bool) -> None:
    if fine:
        assert input_rules.check_seconds("lease", seconds) == seconds
    else:
        with pytest.raises(BadInput, match="lease must be between"):
            input_rules.check_seconds("lease", seconds)


@pytest.mark.parametrize(
    "wrong",
    [
        {"job_id": "../x"}, {"prompt": ""}, {"agent": ""}, {"label": ""}, {"key": "a\nb"}, {"timeout_sec": -1},
        {"idle_timeout_sec": -1}, {"artifacts": ["ok", "../x"]}, {"priority": 1001}, {"max_retries": -1},
        {"due_ms": 253_402_300_800_000}, {"due_ms": -1},
    ],
)  # fmt: skip
def test_a_draft_refuses_what_no_store_should_hold(wrong: dict[str, object]) -> None:
    fine: dict[str, object] = {"job_id": "abc", "prompt": "p", "agent": "codex"}
    with pytest.raises(BadInput):
        draft_job(**{**fine, **wrong})  # type: ignore[arg-type]
