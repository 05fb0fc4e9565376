"""Whose word an event is: HMAC-SHA256 with the job's token, over the bytes as they are sent.

The signature is inside of what it signs, so while it is made and checked its 64 digits stand as zeros.
"""

from __future__ import annotations

from mam.util.encoding import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hmac import HMAC
    from typing import Any

SIGNATURE = "hmac_sig"
_DIGITS = 64
_ZEROS = "0" * _DIGITS
_BEHIND = len(b'"}}')

_MAX_CACHED = 1000
_hmac_cache: dict[str, HMAC] = {}


def sign(payload: dict[str, Any], token: str) -> bytes:
    """The message with its signature as the last thing in it, so that there is no doubt where it stands."""
    named = {name: value for name, value in payload.items() if name != "data"}
    raw = to_bytes({**named, "data": {**payload["data"], SIGNATURE: _ZEROS}})
    begin = len(raw) - _BEHIND - _DIGITS
    return raw[:begin] + _digest(raw, token).encode() + raw[-_BEHIND:]


def is_signed(raw: bytes, signature: object, token: str) -> bool:
    """Whether the signature that was read out of these bytes is the token's. It must stand in them exactly once."""
    from hmac import compare_digest

    if not isinstance(signature, str) or len(signature) != _DIGITS or not signature.isascii():
        return False
    digits = signature.encode()
    if raw.count(digits) != 1:
        return False
    return compare_digest(_digest(raw.replace(digits, _ZEROS.encode()), token), signature)


def _digest(raw: bytes, token: str) -> str:
    """With the token worked in already, which takes longer than the message: who sends or listens has few of them."""
    keyed = _hmac_cache.get(token)
    if keyed is None:
        from hmac import new

        if len(_hmac_cache) >= _MAX_CACHED:
            _hmac_cache.clear()
        keyed = _hmac_cache[token] = new(token.encode(), digestmod="sha256")
    signing = keyed.copy()
    signing.update(raw)
    return signing.hexdigest()
