"""What a store keeps so that a server recognizes its callers: tokens, sessions of browsers, one-time codes, and where
to notify a browser. Pure.

A store holds digests only of what a caller presents. That is random and long, so one round of SHA-256 is enough.
"""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

TOKEN, SESSION, CODE, PUSH = "token", "session", "code", "push"
"""The kinds: a named token, the cookie of a browser, a code that is exchanged once for a cookie, and a browser that
wants notifications (mam.access.subscriptions)."""


class Credential(Frozen, freezes_json=True):
    kind: str
    name: str
    """Unique among those of its kind."""
    digest: str
    """SHA-256 of what the caller presents; of a browser to notify, of its address."""
    parent: str
    """The name of the token that it belongs to; that of a token is its own name."""
    made_ms: int
    expires_ms: int | None
    """None: it does not expire."""
    grant: Json
    """What a token allows (mam.access.grant), or where to notify a browser; empty for the other kinds."""

    def is_live(self, now_ms: int) -> bool:
        return self.expires_ms is None or now_ms < self.expires_ms
