"""The record: strict and versioned, and the shipped schema agrees with the parser."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mam.agents.record import ACTIVE
from mam.agents.record_parser import Invalid, Malformed, Newer, parse_record, record_from
from tests.agents.records import as_bytes, stopped, version_2, version_3

SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "live_agent.schema.json"


@cache
def validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def changed(path: str, held: Any, value: dict[str, Any] | None = None) -> dict[str, Any]:
    """A record with one field changed; `...` removes it."""
    value = copy.deepcopy(version_3() if value is None else value)
    *groups, field = path.split(".")
    target = value
    for group in groups:
        target = target[group]
    if held is ...:
        del target[field]
    else:
        target[field] = held
    return value


@pytest.mark.parametrize("value", [version_3(), stopped(), stopped(state="retired"), version_3(gateway={"port": 1})])
def test_a_record_that_is_read_is_written_unchanged(value: dict[str, Any]) -> None:
    written = record_from(value).to_json()

    assert {name: held for name, held in value.items() if held is not None} == {
        name: held for name, held in written.items() if held is not None
    }
    assert record_from(written) == record_from(value)
    validator().validate(written)
    validator().validate(value)


def test_version_2_becomes_version_3() -> None:
    record = record_from(version_2())

    assert record.lifecycle.state == ACTIVE
    assert record.lifecycle.relaunchable
    assert record.terminal.current_session_name == record.terminal.last_session_name == "HOUMAO-gpu-1700000000000"
    assert record.liveness is not None
    assert record.liveness.published_at == "2026-01-01T09:00:00+09:00"
    assert set(record.groups) == {"gateway", "mailbox"}
    validator().validate(record.to_json())


def test_a_record_without_a_version_is_version_2() -> None:
    value = version_2()
    del value["schema_version"]
    assert record_from(value) == record_from(version_2())


def test_version_2_without_a_root_cannot_be_started_again() -> None:
    assert not record_from(changed("runtime.session_root", None, version_2())).lifecycle.relaunchable


@pytest.mark.parametrize("field", ["published_at", "lease_expires_at"])
@pytest.mark.parametrize("text", ["2026-01-01T00:00:00", "2026-01-01T00:00:00.123456", "2026-01-01 00:00"])
def test_a_time_without_a_zone_is_rejected_with_the_reason(field: str, text: str) -> None:
    with pytest.raises(Invalid, match=rf"liveness\.{field} must be timezone-aware: .*has no time zone"):
        record_from(changed(f"liveness.{field}", text))
    with pytest.raises(Invalid, match="timezone-aware"):
        record_from(changed(field, text, version_2()))


BAD: list[tuple[str, Any, str]] = [
    ("schema_version", 1, "schema_version"),
    ("schema_version", "3", "schema_version"),
    ("schema_version", True, "schema_version"),
    ("agent_name", "", "agent_name"),
    ("agent_name", " gpu", "agent_name"),
    ("agent_name", "a/b", "is not a name"),
    ("agent_name", "MAM", "is not a name"),
    ("agent_name", 7, "agent_name"),
    ("agent_id", "../x", "agent_id"),
    ("agent_id", "x" * 129, "agent_id"),
    ("agent_id", ..., "agent_id"),
    ("generation_id", "a b", "generation_id"),
    ("generation_id", None, "generation_id"),
    ("lifecycle", ..., "lifecycle must be an object"),
    ("lifecycle", [], "lifecycle must be an object"),
    ("lifecycle.state", "asleep", "lifecycle.state must be one of"),
    ("lifecycle.state", "stopped", "stopped_at is missing"),
    ("lifecycle.relaunchable", 1, "true or false"),
    ("lifecycle.stopped_at", "2026-01-01T00:00:00Z", "not allowed in a record that is active"),
    ("lifecycle.stop_reason", "x", "not allowed in a record that is active"),
    ("lifecycle.state_updated_at", "yesterday", "is not a time"),
    ("lifecycle.new", 1, "lifecycle.new is not a field"),
    ("identity.backend", "", "identity.backend"),
    ("identity.tool", None, "identity.tool"),
    ("runtime.manifest_path", ..., "runtime.manifest_path"),
    ("runtime.manifest_path", "a\nb", "one line"),
    ("runtime.session_root", " ", "session_root"),
    ("terminal.kind", "screen", "terminal.kind"),
    ("terminal.current_session_name", None, "current_session_name is missing"),
    ("terminal.last_session_name", None, "last_session_name"),
    ("liveness", None, "liveness is missing"),
    ("liveness.lease_expires_at", "2026-01-01T00:00:00Z", "must be later"),
    ("liveness.lease_expires_at", "2026-02-30T00:00:00Z", "is not a time"),
    ("liveness.lease_expires_at", 1, "lease_expires_at"),
    ("mam", {"host": 1}, "mam.host"),
    ("mam", {"superseded": "x"}, "mam.superseded"),
    ("mam", {"server": "x"}, "mam.server"),
    ("mam", {"new": "x"}, "mam.new is not a field"),
    ("somebody", "text", "'somebody' is not a field"),
    ("gateway", 5, "'gateway' is not a field"),
]
BEYOND_THE_SCHEMA = {"must be later", "is not a time"}


@pytest.mark.parametrize(("path", "held", "why"), BAD)
def test_an_invalid_record_is_rejected_with_its_reason(path: str, held: Any, why: str) -> None:
    value = changed(path, held)
    with pytest.raises(Invalid, match=why):
        record_from(value)
    if why not in BEYOND_THE_SCHEMA:
        assert not validator().is_valid(value), "the schema takes it"


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("lifecycle.relaunchable", True),
        ("lifecycle.stopped_at", None),
        ("liveness", {"published_at": "2026-01-01T00:00:00Z", "lease_expires_at": "2026-01-02T00:00:00Z"}),
        ("terminal.current_session_name", "gpu"),
        ("gateway", {"port": 1}),
    ],
)
def test_a_retired_record_holds_no_live_fields(path: str, held: Any) -> None:
    value = changed(path, held, stopped(state="retired"))
    with pytest.raises(Invalid):
        record_from(value)
    assert not validator().is_valid(value)


def test_a_newer_version_is_its_own_answer() -> None:
    with pytest.raises(Newer, match="schema_version 4"):
        record_from(changed("schema_version", 4))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{", b"{" * 5000, b'{"schema_version": 1e999}', b"[" * 10**5])
def test_invalid_json_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_record(data)


def test_a_duplicate_field_is_rejected() -> None:
    text = as_bytes(version_3())
    with pytest.raises(Invalid, match="twice"):
        parse_record(b'{"agent_id": "x", ' + text[1:])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON)
def test_nothing_but_the_three_answers_comes_out(value: Any) -> None:
    try:
        parse_record(as_bytes(value))
    except (Malformed, Invalid, Newer):
        return


@given(st.sampled_from(sorted(version_3())), _JSON)
def test_one_group_of_rubbish_is_an_answer_too(group: str, value: Any) -> None:
    try:
        record_from({**version_3(), group: value})
    except (Malformed, Invalid, Newer):
        return
