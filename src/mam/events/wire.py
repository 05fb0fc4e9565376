"""Encodes an event as the bytes of a message, and parses and checks received bytes.

docs/protocol.md describes the format for other implementations.
"""

from __future__ import annotations

from mam.events.data import DEPTH_LIMIT
from mam.events.event import EVENTS, SCHEMA_VERSION
from mam.events.signing import SIGNATURE, is_signed, sign
from mam.util.encoding import to_bytes
from mam.util.strict_json import UnsafeJson, strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SIZE_LIMIT = 16 * 1024
"""Bytes of a message. A longer one is sent without its data; the registry has the whole event."""

TRUNCATED = "truncated"
"""In `data`: the message was shortened; the registry has the whole event."""

DETAIL_WHEN_LONG = 500
SHORTEST_SECRET = 4
"""A shorter secret may occur in any text, and replacing it would reveal it."""

MAX_SEQ = 2**53

_FIELDS = {
    "schema_version": int, "seq": int, "job_id": str, "event": str, "timestamp": str, "detail": str, "data": dict,
}  # fmt: skip


class InvalidMessage(Exception):
    """A received message is dropped; the text is the reason."""


def to_wire(payload: dict[str, Any], token: str | None = None, hidden: Iterable[str] = ()) -> bytes:
    """The message for one event. Texts in `hidden` are secrets, which are removed from it."""
    data = {name: value for name, value in payload["data"].items() if name != SIGNATURE}
    payload = {**{name: value for name, value in payload.items() if name != "data"}, "data": data}
    for secret in hidden:
        if len(secret) >= SHORTEST_SECRET:
            payload = {**payload, "detail": _without(payload["detail"], secret), "data": _without(data, secret)}
            data = payload["data"]
    raw = _encode(payload, token)
    if len(raw) <= SIZE_LIMIT:
        return raw
    kept = {"status": data["status"]} if "status" in data and len(str(data["status"])) <= 64 else {}
    return _encode(
        {**payload, "detail": payload["detail"][:DETAIL_WHEN_LONG], "data": {**kept, TRUNCATED: True}}, token
    )


def parse_wire(raw: bytes, token: str | None = None) -> dict[str, Any]:
    """The event in a message, without its signature; InvalidMessage if it is malformed or wrongly signed."""
    if len(raw) > SIZE_LIMIT:
        raise InvalidMessage(f"it has more than {SIZE_LIMIT} bytes")
    payload = _decode(raw)
    _check_fields(payload)
    signature = payload["data"].pop(SIGNATURE, None)
    if token is not None and not is_signed(raw, signature, token):
        raise InvalidMessage("it is not signed" if signature is None else "its signature is wrong")
    return payload


def _encode(payload: dict[str, Any], token: str | None) -> bytes:
    return to_bytes(payload) if token is None else sign(payload, token)


def _without(value: Any, secret: str) -> Any:
    if isinstance(value, str):
        return value.replace(secret, "…")
    if isinstance(value, dict):
        return {_without(name, secret): _without(item, secret) for name, item in value.items()}
    return [_without(item, secret) for item in value] if isinstance(value, list) else value


def _decode(raw: bytes) -> dict[str, Any]:
    try:
        payload = strict_json(raw, DEPTH_LIMIT + 1)
    except UnsafeJson as doubt:
        raise InvalidMessage(str(doubt)) from None
    except ValueError:
        raise InvalidMessage("it is not JSON") from None
    if not isinstance(payload, dict):
        raise InvalidMessage("it is not a JSON object")
    return payload


def _check_fields(payload: dict[str, Any]) -> None:
    version = payload.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise InvalidMessage(f"its schema_version is {str(version)[:20]}, and this mam reads {SCHEMA_VERSION}")
    if payload.keys() != _FIELDS.keys():
        raise InvalidMessage("it does not have exactly the fields of an event")
    for name, kind in _FIELDS.items():
        if type(payload[name]) is not kind:
            raise InvalidMessage(f"its {name} has the wrong type")
    if payload["event"] not in EVENTS:
        raise InvalidMessage("its event is unknown")
    if not 1 <= payload["seq"] <= MAX_SEQ:
        raise InvalidMessage("its seq is out of range")
