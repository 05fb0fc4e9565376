"""Events as messages: what is sent, and which received messages are refused."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mam.events.wire import SIZE_LIMIT, InvalidMessage, parse_wire, to_wire

TOKEN = "mF_9.B5f-4.1JqM-token-for-tests"
PAYLOAD: dict[str, Any] = {
    "schema_version": 1,
    "seq": 3,
    "job_id": "abc12345",
    "event": "progress",
    "timestamp": "2026-06-19T09:32:00Z",
    "detail": "정렬 half of it",
    "data": {"percent": 50},
}
UNSIGNED = (
    '{"schema_version":1,"seq":3,"job_id":"abc12345","event":"progress","timestamp":"2026-06-19T09:32:00Z",'
    '"detail":"정렬 half of it","data":{"percent":50}}'
).encode()
SIGNATURE = "326c2933e0be2f45e0abd5cccef38a776ab2156f517466f8f84bb93374467ba2"
SIGNED = UNSIGNED[:-2] + b',"hmac_sig":"' + SIGNATURE.encode() + b'"}}'


def test_the_bytes_are_the_documented_ones() -> None:
    assert to_wire(PAYLOAD) == UNSIGNED
    assert to_wire(PAYLOAD, TOKEN) == SIGNED


def test_the_signature_is_what_any_language_computes() -> None:
    zeroed = SIGNED.replace(SIGNATURE.encode(), b"0" * 64)

    assert hmac.new(TOKEN.encode(), zeroed, hashlib.sha256).hexdigest() == SIGNATURE


def test_a_sent_event_can_be_parsed() -> None:
    assert parse_wire(UNSIGNED) == PAYLOAD
    assert parse_wire(SIGNED, TOKEN) == PAYLOAD
    assert parse_wire(SIGNED) == PAYLOAD  # without a token a signature says nothing


def _changed(**fields: Any) -> bytes:
    return json.dumps({**PAYLOAD, **fields}).encode()


@pytest.mark.parametrize(
    "message",
    [
        UNSIGNED,
        SIGNED.replace(b"half", b"HALF"),
        SIGNED.replace(b'"seq":3', b'"seq":4'),
        SIGNED[:-3] + b' "}}',
        SIGNED + b" ",
        SIGNED.replace(SIGNATURE.encode(), SIGNATURE.upper().encode()),
        SIGNED.replace(SIGNATURE.encode(), b"0" * 64),
        SIGNED.replace(SIGNATURE.encode(), b"\\u0033" + SIGNATURE[1:].encode()),
        to_wire(PAYLOAD, "another token"),
        _changed(data={"hmac_sig": 7}),
        _changed(data={"hmac_sig": None}),
        _changed(detail=SIGNATURE, data={"hmac_sig": SIGNATURE}),
        _changed(data={"inner": {"hmac_sig": SIGNATURE}}),
    ],
)
def test_with_a_token_nothing_else_is_accepted(message: bytes) -> None:
    with pytest.raises(InvalidMessage):
        parse_wire(message, TOKEN)


BAD = {
    "empty": b"",
    "no json": b"hello",
    "half": UNSIGNED[:-5],
    "not utf-8": UNSIGNED.replace("정렬".encode(), b"\xff\xfe"),
    "with a mark": b"\xef\xbb\xbf" + UNSIGNED,
    "utf-16": UNSIGNED.decode().encode("utf-16"),
    "two": UNSIGNED + UNSIGNED,
    "array": b"[" + UNSIGNED + b"]",
    "number": b"1",
    "null": b"null",
    "too long": _changed(detail="x" * SIZE_LIMIT),
    "name twice": UNSIGNED.replace(b'"seq":3', b'"seq":3,"seq":4'),
    "name twice inside": UNSIGNED.replace(b'"percent":50', b'"percent":50,"percent":51'),
    "nan": UNSIGNED.replace(b"50", b"NaN"),
    "infinity": UNSIGNED.replace(b"50", b"-Infinity"),
    "huge": UNSIGNED.replace(b"50", b"1e999"),
    "endless digits": UNSIGNED.replace(b"50", b"9" * 5000),
    "deep": UNSIGNED.replace(b"50", b"[" * 65 + b"]" * 65),
    "very deep": UNSIGNED.replace(b"50", b"[" * 7000 + b"]" * 7000),
    "unclosed": b"[" * SIZE_LIMIT,
    "version 2": _changed(schema_version=2),
    "version 0": _changed(schema_version=0),
    "version true": _changed(schema_version=True),
    "version text": _changed(schema_version="1"),
    "no version": json.dumps({name: PAYLOAD[name] for name in PAYLOAD if name != "schema_version"}).encode(),
    "seq 0": _changed(seq=0),
    "seq negative": _changed(seq=-1),
    "seq text": _changed(seq="3"),
    "seq float": _changed(seq=3.0),
    "seq true": _changed(seq=True),
    "seq beyond": _changed(seq=2**53 + 1),
    "job number": _changed(job_id=7),
    "unknown event": _changed(event="exploded"),
    "event list": _changed(event=["completed"]),
    "data list": _changed(data=[]),
    "data null": _changed(data=None),
    "detail null": _changed(detail=None),
    "one more field": _changed(run="rm"),
    "one less": json.dumps({name: PAYLOAD[name] for name in PAYLOAD if name != "detail"}).encode(),
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_event_is_dropped_with_a_reason(name: str) -> None:
    with pytest.raises(InvalidMessage) as why:
        parse_wire(BAD[name])

    assert str(why.value).startswith(("it ", "its "))
    assert "\n" not in str(why.value)


def test_64_levels_are_taken() -> None:
    assert parse_wire(UNSIGNED.replace(b"50", b"[" * 63 + b"]" * 63))["seq"] == 3


def test_an_event_that_is_too_long_is_sent_without_its_data() -> None:
    long = {**PAYLOAD, "event": "error", "data": {"text": "x" * 60_000, "status": "cancelled"}}

    message = to_wire(long, TOKEN)

    assert len(message) <= SIZE_LIMIT
    assert parse_wire(message, TOKEN)["data"] == {"status": "cancelled", "truncated": True}


def test_the_longest_detail_fits_in_any_spelling() -> None:
    longest = {**PAYLOAD, "detail": "\U0001f600" * 1999 + "\ud800", "data": {"text": "\ud800" * 10_000}}

    assert len(to_wire(longest, TOKEN)) <= SIZE_LIMIT


def test_a_signature_in_the_data_is_not_sent() -> None:
    forged = {**PAYLOAD, "data": {"hmac_sig": "f" * 64, "percent": 50}}

    assert to_wire(forged) == UNSIGNED
    assert to_wire(forged, TOKEN) == SIGNED


def test_secrets_that_slipped_in_are_not_sent() -> None:
    leaky = {**PAYLOAD, "detail": f"token {TOKEN}!", "data": {"deep": [{"a": TOKEN, TOKEN: 1}], "pw": "s3cret-pw"}}

    message = to_wire(leaky, TOKEN, [TOKEN, "s3cret-pw"])

    assert TOKEN.encode() not in message
    assert b"s3cret-pw" not in message
    assert parse_wire(message, TOKEN)["detail"] == "token …!"


_json = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**53), 2**53) | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_data = some.dictionaries(some.text(max_size=8).filter(lambda name: name != "hmac_sig"), _json, max_size=5)


@given(data=_data, detail=some.text(max_size=100), token=some.text(min_size=1, max_size=40).filter(str.strip))
def test_every_event_survives_the_round_trip(data: dict[str, Any], detail: str, token: str) -> None:
    payload = {**PAYLOAD, "detail": detail, "data": data}

    assert parse_wire(to_wire(payload, token), token) == payload


@given(data=_data, at=some.integers(0, 10_000), bit=some.integers(0, 7))
def test_no_bit_can_be_changed(data: dict[str, Any], at: int, bit: int) -> None:
    message = bytearray(to_wire({**PAYLOAD, "data": data}, TOKEN))
    message[at % len(message)] ^= 1 << bit

    with pytest.raises(InvalidMessage):
        parse_wire(bytes(message), TOKEN)


@given(some.binary(max_size=300))
def test_any_bytes_are_read_or_dropped(message: bytes) -> None:
    with pytest.raises(InvalidMessage):
        parse_wire(message)
