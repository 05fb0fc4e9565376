"""What a store keeps so that a server recognizes its callers: tokens, sessions of browsers, and one-time codes. Pure.

A store holds digests only. What a caller presents is random and long, so one round of SHA-256 is enough.
"""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

TOKEN, SESSION, CODE = "token", "session", "code"
"""The kinds: a named token, the cookie of a browser, and a code that is exchanged once for a cookie."""


class Credential(Frozen, freezes_json=True):
    kind: str
    name: str
    """Unique among those of its kind."""
    digest: str
    """SHA-256 of what the caller presents."""
    parent: str
    """The name of the token that it belongs to; that of a token is its own name."""
    made_ms: int
    expires_ms: int | None
    """None: it does not expire."""
    grant: Json
    """What a token allows (mam.access.grant); empty for the other kinds."""

    def is_live(self, now_ms: int) -> bool:
        return self.expires_ms is None or now_ms < self.expires_ms
