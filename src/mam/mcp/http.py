"""MCP over HTTP: what one POST says, and the status of its answer. Pure; `mam.serve` receives and sends.

The server keeps no session. A client with a handshake gets no session id, and the header of its later requests names
the version that it agreed on.
"""

from __future__ import annotations

import base64
import binascii

from mam.mcp.messages import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Answer,
    Notification,
    Request,
    RpcError,
    read_message,
)
from mam.mcp.versions import STATELESS, VERSION_KEY, WITH_HANDSHAKE, Client, client_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.mcp.messages import Json

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
_NAMED_BY = {
    "tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
    "tasks/update": "taskId", "tasks/cancel": "taskId",
}  # fmt: skip
"""The parameter that the header Mcp-Name repeats."""

_STATUSES = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, HEADER_MISMATCH: 400, MISSING_CAPABILITY: 400, UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}  # fmt: skip
_BEGINS, _ENDS = "=?base64?", "?="


def read_body(body: bytes) -> Request | Notification | None:
    """The message; None for an answer, which this server never asks for."""
    message = read_message(body)
    return None if isinstance(message, Answer) else message


def client_of_request(request: Request, headers: Mapping[str, str]) -> Client:
    """Who sends it, by its body or, with a handshake, by its headers. `headers` has names in lower case."""
    meta = request.params.get("_meta")
    if isinstance(meta, dict) and VERSION_KEY in meta:
        _check_headers(request, headers, str(meta[VERSION_KEY]))
        return client_of(request.params, None)
    version = headers.get(VERSION_HEADER, WITH_HANDSHAKE[-1])
    if version in STATELESS:
        return client_of(request.params, None)  # which reports what is missing
    if version not in WITH_HANDSHAKE:
        data: Json = {"supported": [*STATELESS, *WITH_HANDSHAKE], "requested": version[:64]}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return Client(version=version, capabilities={})


def status_of(error: RpcError) -> int:
    return _STATUSES.get(error.code, 200)


def _check_headers(request: Request, headers: Mapping[str, str], version: str) -> None:
    """A proxy may have judged the request by its headers, so they must say what the body says."""
    _check_header(VERSION_HEADER, headers.get(VERSION_HEADER), version)
    _check_header(METHOD_HEADER, headers.get(METHOD_HEADER), request.method)
    parameter = _NAMED_BY.get(request.method)
    if parameter is not None and isinstance(request.params.get(parameter), str):
        _check_header(NAME_HEADER, _decoded(headers.get(NAME_HEADER)), request.params[parameter])


def _check_header(name: str, value: str | None, wanted: str) -> None:
    if value != wanted:
        what = "is missing" if value is None else f"is {value[:80]!r}, which is not what the body says"
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} {what}")


def _decoded(value: str | None) -> str | None:
    if value is None or not (value.startswith(_BEGINS) and value.endswith(_ENDS)):
        return value
    try:
        return base64.b64decode(value[len(_BEGINS) : -len(_ENDS)], validate=True).decode()
    except (binascii.Error, ValueError):
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {NAME_HEADER} is not Base64") from None
