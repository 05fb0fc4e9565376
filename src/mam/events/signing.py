"""Signs events: HMAC-SHA256 with the job's token, over the bytes as they are sent.

The signature is inside the signed message, so it is computed with its 64 digits set to zero.
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
    """The message with its signature as the last value, so that its position is known."""
    named = {name: value for name, value in payload.items() if name != "data"}
    raw = to_bytes({**named, "data": {**payload["data"], SIGNATURE: _ZEROS}})
    begin = len(raw) - _BEHIND - _DIGITS
    return raw[:begin] + _digest(raw, token).encode() + raw[-_BEHIND:]


def is_signed(raw: bytes, signature: object, token: str) -> bool:
    """Whether the signature in these bytes matches the token. It must occur in them exactly once."""
    from hmac import compare_digest

    if not isinstance(signature, str) or len(signature) != _DIGITS or not signature.isascii():
        return False
    digits = signature.encode()
    if raw.count(digits) != 1:
        return False
    return compare_digest(_digest(raw.replace(digits, _ZEROS.encode()), token), signature)


def _digest(raw: bytes, token: str) -> str:
    """Caches the keyed HMAC of each token, because keying takes longer than hashing the message."""
    keyed = _hmac_cache.get(token)
    if keyed is None:
        from hmac import new

        if len(_hmac_cache) >= _MAX_CACHED:
            _hmac_cache.clear()
        keyed = _hmac_cache[token] = new(token.encode(), digestmod="sha256")
    signing = keyed.copy()
    signing.update(raw)
    return signing.hexdigest()
