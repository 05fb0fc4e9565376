"""JSON-RPC 2.0 as MCP uses it: one message from bytes, and the answers to it. Pure.

Every message is hostile input. `read_message` returns a message or raises RpcError, whatever the bytes are.
"""

from __future__ import annotations

import json

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    Id = str | int

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
OLD_RESOURCE_NOT_FOUND = -32002
"""Versions before 2026-07-28 have a code of its own for this; later ones say INVALID_PARAMS."""
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022

MESSAGE_LIMIT = 49 * 1024 * 1024
"""Bytes of one message: room for the longest prompt, also where JSON writes each byte of it as six."""

ID_LIMIT = 256


class RpcError(Exception):
    """A request that gets no result."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Request(Frozen):
    id: Id
    method: str
    params: Json


class Notification(Frozen):
    method: str
    params: Json


class Answer(Frozen):
    """The client's answer to a request of the server."""

    id: Id | None
    result: Json | None = None
    """None for an error."""


def read_message(data: bytes) -> Request | Notification | Answer:
    from mam.util.strict_json import safe_json

    if len(data) > MESSAGE_LIMIT:
        raise too_long()
    try:
        fields = safe_json(data)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "this is not one JSON message in UTF-8") from None
    if not isinstance(fields, dict):
        raise RpcError(INVALID_REQUEST, "a message is one JSON object; batches are not part of this protocol")
    return _message(fields)


def too_long() -> RpcError:
    return RpcError(INVALID_REQUEST, f"a message has at most {MESSAGE_LIMIT:,} bytes")


def id_of(data: bytes) -> Id | None:
    """The id of a message that was refused, if it has one: the client can then tell which request failed."""
    from mam.util.strict_json import safe_json

    if len(data) > MESSAGE_LIMIT:
        return None
    try:
        fields = safe_json(data)
    except (ValueError, RecursionError):
        return None
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if _is_id(found) else None


def _message(fields: Json) -> Request | Notification | Answer:
    if fields.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"')
    if "method" not in fields and ("result" in fields or "error" in fields):
        result = fields.get("result")
        return Answer(
            id=fields.get("id") if _is_id(fields.get("id")) else None,
            result=result if isinstance(result, dict) else None,
        )
    method, params = fields.get("method"), fields.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "a request has a method")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS if _is_id(fields.get("id")) else INVALID_REQUEST, "params is a JSON object")
    if "id" not in fields:
        return Notification(method=method, params=params)
    if not _is_id(fields["id"]):
        raise RpcError(INVALID_REQUEST, f"the id of a request is a whole number or at most {ID_LIMIT} characters")
    return Request(id=fields["id"], method=method, params=params)


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= ID_LIMIT
    return type(value) is int and abs(value) < 2**63


def result_message(request_id: Id, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(request_id: Id | None, error: RpcError) -> Json:
    """Without an id if the request's could not be read."""
    shown: Json = {"code": error.code, "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": shown}


def request_message(request_id: Id, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: Json) -> bytes:
    """One line. Text that UTF-8 cannot hold, such as half of a surrogate pair, stays escaped."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"
