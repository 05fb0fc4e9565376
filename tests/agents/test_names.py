"""One agent has one name, however it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.agents.errors import BadName
from mam.agents.names import (
    bare_name,
    canonical_name,
    check_agent_id,
    default_agent_id,
    default_agent_ids,
    is_agent_id,
    is_name,
)


def test_three_forms_are_one_name() -> None:
    forms = ("gpu", "MAM-gpu", "HOUMAO-gpu")

    assert {bare_name(form) for form in forms} == {"gpu"}
    assert {canonical_name(form) for form in forms} == {"MAM-gpu"}
    assert {canonical_name(form, "HOUMAO") for form in forms} == {"HOUMAO-gpu"}
    assert {canonical_name(form, "") for form in forms} == {"gpu"}
    assert default_agent_id("gpu") == default_agent_id("MAM-gpu")


def test_a_name_of_houmao_has_the_id_that_houmao_derives() -> None:
    assert default_agent_id("HOUMAO-gpu") == "29754db0e608e15e9599719459716026"
    assert default_agent_ids("gpu") == default_agent_ids("HOUMAO-gpu")


def test_different_names_have_different_ids() -> None:
    assert default_agent_id("claude") != default_agent_id("claude-2")
    assert is_agent_id(default_agent_id("claude"))


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "a/b",
        "a\\b",
        "a b",
        "a.b",
        "x\0",
        "-x",
        "_x",
        "a\n",
        "é",
        "ａ",
        "MAM",
        "mam",
        "Houmao",
        "mam-x",
        "MAM_x",
        "houmao-gpu",
        "MAM-",
        "MAM-MAM-x",
        "MAM-HOUMAO-x",
        "x" * 129,
        "²",
    ],
)
def test_an_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(BadName) as caught:
        bare_name(name)
    assert caught.value.exit_code == 2
    assert not is_name(name)


@pytest.mark.parametrize("name", ["mammoth", "houmaos", "a", "9", "claude-2", "x" * 128, "MAM-mammoth"])
def test_names_that_only_look_like_a_prefix(name: str) -> None:
    assert is_name(name)


@given(st.text())
def test_an_id_is_safe_as_a_part_of_a_path(text: str) -> None:
    if is_agent_id(text):
        assert check_agent_id(text) == text
        assert not set(text) & set("/\\.\0\n =:;%$")
    else:
        with pytest.raises(BadName):
            check_agent_id(text)


def test_a_prefix_is_one_of_two() -> None:
    with pytest.raises(BadName, match="prefix"):
        canonical_name("gpu", "TEAM")
