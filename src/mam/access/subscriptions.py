"""The browsers that want notifications. A store keeps each with the token and the log-in that it came from, and forgets
it with them."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import urlsplit

from mam.access.credentials import digest_of, owner_of
from mam.access.grant import ANSWER, READ, SUBMIT, parse_grant
from mam.access.viewer import Viewer
from mam.errors import BadInput, NotAllowed, NotLoggedIn, Refused
from mam.jobs.credential import PUSH, SESSION, TOKEN, Credential
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.port import Store

ADDRESS_LIMIT = 2_000
_POINT_BYTES, _SECRET_BYTES = 65, 16


class Subscription(Frozen):
    """A browser at its push service, as the Push API of browsers describes it."""

    name: str
    token: str
    session: str
    endpoint: str
    """The address to which its push service takes messages. Who knows it can send there, so it is shown to no one."""
    p256dh: str
    auth: str
    """The keys of the browser, in URL-safe base64."""
    key: str
    """The public key of the server that it accepts."""
    made_ms: int

    @property
    def service(self) -> str:
        """The host of its push service."""
        return urlsplit(self.endpoint).hostname or "?"


def subscribe(store: Store, viewer: Viewer, *, endpoint: str, p256dh: str, auth: str, key: str) -> Subscription:
    """Keeps a browser until its log-in ends. A repeat replaces what was kept."""
    if viewer.token is None or viewer.session is None:
        raise BadInput(why="only a browser that is logged in can be notified")
    if not any(map(viewer.may, (READ, ANSWER, SUBMIT))):
        raise NotAllowed(who=viewer.label, what="be notified", why=": it sees no job")
    _check_endpoint(endpoint)
    _check_key("p256dh", p256dh, _POINT_BYTES)
    _check_key("auth", auth, _SECRET_BYTES)
    _check_key("key", key, _POINT_BYTES)
    session = next((one for one in store.credentials(SESSION) if one.name == viewer.session), None)
    digest = digest_of(endpoint)
    store.drop_credential(PUSH, digest[:12])
    kept = Credential(
        kind=PUSH, name=digest[:12], digest=digest, parent=viewer.name, made_ms=store.clock.now().wall_ms,
        expires_ms=None if session is None else session.expires_ms,
        grant={"endpoint": endpoint, "p256dh": p256dh, "auth": auth, "key": key, "session": viewer.session},
    )  # fmt: skip
    if session is None or not store.keep_credential(kept):
        raise NotLoggedIn(why="The log-in of this browser has ended.")
    return _subscription(kept)


def subscriptions(store: Store) -> list[Subscription]:
    """All that are live, by name. One whose log-in has ended is forgotten."""
    kept = store.credentials(PUSH)
    if not kept:
        return []
    now_ms = store.clock.now().wall_ms
    sessions = {one.name for one in store.credentials(SESSION) if one.is_live(now_ms)}
    for one in kept:
        if one.grant.get("session") not in sessions:
            store.drop_credential(PUSH, one.name)
    return [_subscription(one) for one in kept if one.is_live(now_ms) and one.grant.get("session") in sessions]


def subscriptions_of(store: Store, viewer: Viewer) -> list[Subscription]:
    """Those of the viewer's token; all of them for an administrator."""
    return [one for one in subscriptions(store) if viewer.grant.is_admin or one.token == viewer.name]


def own_subscription(store: Store, viewer: Viewer, name: str) -> Subscription:
    found = [one for one in subscriptions_of(store, viewer) if one.name == name]
    if not found:
        raise Refused(why=f"No browser {name[:80]!r} is notified; `mam push` lists them.")
    return found[0]


def unsubscribe(store: Store, name: str) -> None:
    store.drop_credential(PUSH, name)


def viewer_of_subscription(store: Store, one: Subscription) -> Viewer | None:
    """The rights with which it is notified; None when its token has ended."""
    now_ms = store.clock.now().wall_ms
    token = next((token for token in store.credentials(TOKEN) if token.name == one.token), None)
    if token is None or not token.is_live(now_ms):
        return None
    return Viewer(name=token.name, grant=parse_grant(token.grant), token=owner_of(token), session=one.session)


def _subscription(kept: Credential) -> Subscription:
    texts = {name: str(kept.grant.get(name, "")) for name in ("endpoint", "p256dh", "auth", "key", "session")}
    return Subscription(name=kept.name, token=kept.parent, made_ms=kept.made_ms, **texts)


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        has_host = False
    is_plain = all("!" <= one <= "~" for one in endpoint) and len(endpoint) <= ADDRESS_LIMIT
    if not is_plain or not has_host or parts.scheme not in ("https", "http") or "@" in parts.netloc:
        raise BadInput(why="the address of a push service is an https address")


def _check_key(name: str, text: str, size: int) -> None:
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if text.isascii() else b""
    except (ValueError, binascii.Error):
        found = b""
    if len(found) != size:
        raise BadInput(why=f"{name} is not a key of {size} bytes in URL-safe base64")
