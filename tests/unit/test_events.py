"""The format of events, and what is redacted from them."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.errors import BadInput
from mam.events.event import DETAIL_LIMIT, EVENTS, check_data, check_event, event_payload, redact
from tests.unit.jobs import NOW

NAMES = st.text(alphabet=string.ascii_letters + string.digits + "._-+@ä한", min_size=1, max_size=8).filter(
    lambda name: name.strip(".") != ""
)
PATHS = st.lists(NAMES, min_size=2, max_size=5).map(lambda names: "/" + "/".join(names))
AROUND = st.sampled_from(["", " ", "'", '"', "`", "(", "[", "<", "=", ": ", ", ", "see ", "wrote "])
BEHIND = st.sampled_from(["", " ", "'", '"', "`", ")", ":12", ", then", ";", "\n", " (gone)"])


@given(PATHS, AROUND, BEHIND)
def test_an_absolute_path_keeps_only_its_last_name(path: str, before: str, behind: str) -> None:
    said = redact(f"{before}{path}{behind}")

    assert path.rpartition("/")[0] + "/" not in said
    assert f"…/{path.rpartition('/')[2]}" in said


@given(PATHS, st.sampled_from(["~{}", "file://{}", "/{}", "-I{}", "--out={}", "x:{}", "a,{}", "PATH={0}:{0}"]))
def test_no_spelling_of_an_absolute_path_gets_through(path: str, spelling: str) -> None:
    assert path.rpartition("/")[0] + "/" not in redact("see " + spelling.format(path))


@given(st.text(max_size=60), PATHS)
def test_any_detail_becomes_one_line_of_bounded_size(text: str, path: str) -> None:
    said = redact(f"{text} {path} " * 40)

    assert len(said) <= DETAIL_LIMIT
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", said)
    assert f" {path.rpartition('/')[0]}/" not in said


@pytest.mark.parametrize(
    "detail",
    [
        "half done",
        "3/4 tests pass",
        "and/or",
        "src/mam/util/clock.py changed",
        "./run and ../x stay",
        "https://example.org/a/b/c?d=/e",
        "절반",
        "",
        "a / b",
    ],
)
def test_a_relative_path_is_unchanged(detail: str) -> None:
    assert redact(detail) == detail


def test_the_payload_is_that_of_the_protocol_in_its_order() -> None:
    said = {"event": "progress", "detail": "절반", "data": {"n": 1}}
    payload = event_payload(seq=4, job_id="abc12345", timestamp=NOW.second, **said)  # type: ignore[arg-type]

    assert list(payload.items()) == [
        ("schema_version", 1),
        ("seq", 4),
        ("job_id", "abc12345"),
        ("event", "progress"),
        ("timestamp", NOW.second),
        ("detail", "절반"),
        ("data", {"n": 1}),
    ]
    assert event_payload(seq=1, job_id="a", event="started", timestamp=NOW.second, detail="")["data"] == {}


def test_there_are_five_events() -> None:
    assert [check_event(name) for name in EVENTS] == [
        "started",
        "permission_required",
        "progress",
        "completed",
        "error",
    ]


@pytest.mark.parametrize("name", ["", "Started", "cancelled", "banana", "progress\n", "x" * 1000])
def test_any_other_name_is_not_an_event(name: str) -> None:
    with pytest.raises(BadInput, match="choose from started") as refused:
        check_event(name)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_data_that_json_cannot_express_is_rejected(value: object) -> None:
    with pytest.raises(BadInput, match="JSON"):
        check_data({"value": value})


BAD_TEXTS: list[dict[str, Any]] = [{"a": "\0"}, {"\0": 1}, {"a": [{"b": ["c\0d"]}]}, {"a": "\ud800"}, {"\udcff": 1}]


@pytest.mark.parametrize("data", BAD_TEXTS, ids=ascii)
def test_text_that_not_every_store_takes_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"NUL|UTF-8"):
        check_data(data)


@pytest.mark.parametrize("text", [r"\u0000", r"\\u0000", "\x01", "ä😀\u2028"], ids=ascii)
def test_text_that_only_looks_like_it_is_taken(text: str) -> None:
    assert check_data({"a": [text, {text: 1}]}) == {"a": [text, {text: 1}]}


def test_half_a_surrogate_pair_does_not_get_into_a_detail() -> None:
    assert redact("a\udcffb") == "a b"
