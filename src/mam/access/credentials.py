"""Makes and recognizes what callers present: tokens, one-time codes and the cookies of browsers.

A store keeps digests. A secret is shown once, where it is made, and appears in no error, log or event.
"""

from __future__ import annotations

import hashlib
import secrets

from mam.access.grant import EVERYTHING, Grant, parse_grant
from mam.access.viewer import LOCAL_TOKEN, Viewer
from mam.errors import BadInput, NotLoggedIn, Refused
from mam.jobs.credential import CODE, PUSH, SESSION, TOKEN, Credential
from mam.jobs.input_rules import is_session_id
from mam.util.clock import iso_milli
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.stores.port import Store

PREFIX = "mam_"
"""Scanners for secrets recognize a token by it."""

CODE_MINUTES = 10
PAIRING_MINUTES = 15
SESSION_DAYS = 30
_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's alphabet: no I, L, O and U, which people misread."""
_CODE_LETTERS = 16
_LONGEST_SECRET = 200
_OWNER_DIGITS = 12


class NewSecret(Frozen):
    """A credential and its secret, which is shown once."""

    credential: Credential
    secret: str


def create_token(store: Store, name: str, grant: Grant, expires_ms: int | None = None) -> NewSecret:
    """A named token. Names are unique, so that a person can tell what to revoke."""
    if not is_session_id(name):
        raise BadInput(why=f"{name[:80]!r} is not a name of a token: letters, digits, _ and -, at most 128")
    made = _keep(store, TOKEN, name, name, PREFIX + secrets.token_urlsafe(32), expires_ms, grant)
    if made is None:
        raise Refused(why=f"A token {name} exists already; `mam token revoke {name}` removes it.")
    return made


def revoke_token(store: Store, name: str) -> None:
    """Ends the token, with the sessions and codes that belong to it."""
    if not store.drop_credential(TOKEN, name):
        raise Refused(why=f"There is no token {name[:80]!r}; `mam token list` lists them.")


def tokens(store: Store) -> list[Credential]:
    """By name, without those that have expired."""
    now = store.clock.now().wall_ms
    return [token for token in store.credentials(TOKEN) if token.is_live(now)]


def token_json(token: Credential) -> Json:
    """What a person may see of it."""
    return {
        "name": token.name, **parse_grant(token.grant).to_json(), "created_at": iso_milli(token.made_ms),
        "expires_at": None if token.expires_ms is None else iso_milli(token.expires_ms),
    }  # fmt: skip


def ensure_local_token(store: Store) -> None:
    """The token of the user who starts the server, to which the printed log-in belongs."""
    if all(token.name != LOCAL_TOKEN for token in store.credentials(TOKEN)):
        _keep(store, TOKEN, LOCAL_TOKEN, LOCAL_TOKEN, secrets.token_urlsafe(32), None, EVERYTHING)


def create_code(store: Store, token: str, minutes: float = CODE_MINUTES) -> NewSecret:
    """A one-time code for a log-in that belongs to this token. A person may have to type it."""
    code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LETTERS))
    expires_ms = store.clock.now().wall_ms + int(minutes * _MINUTE_MS)
    made = _keep(store, CODE, secrets.token_hex(8), token, code, expires_ms, None)
    if made is None:
        raise Refused(why=f"There is no token {token[:80]!r}; `mam token list` lists them.")
    return made.replace(secret="-".join(code[at : at + 4] for at in range(0, _CODE_LETTERS, 4)))


def exchange_code(store: Store, typed: str) -> NewSecret:
    """The secret of a new session for a one-time code, which is used up."""
    letters = _normal_code(typed[:_LONGEST_SECRET])
    code = None if letters is None else store.take_credential(digest_of(letters))
    if code is None or code.kind != CODE or not code.is_live(store.clock.now().wall_ms):
        raise NotLoggedIn(why="This code is not valid, or it was used before; `mam serve` prints a new one.")
    return open_session(store, code.parent)


def open_session(store: Store, token: str) -> NewSecret:
    """A session of a browser, which ends with its token."""
    parent = _token(store, token)
    expires_ms = store.clock.now().wall_ms + SESSION_DAYS * _DAY_MS
    if parent is not None and parent.expires_ms is not None:
        expires_ms = min(expires_ms, parent.expires_ms)
    made = _keep(store, SESSION, secrets.token_hex(8), token, secrets.token_urlsafe(32), expires_ms, None)
    if made is None:
        raise NotLoggedIn(why="The token of this log-in was revoked.")
    return made


def close_session(store: Store, name: str) -> None:
    """Ends a log-in of a browser, which is then not notified any more."""
    store.drop_credential(SESSION, name)
    for one in store.credentials(PUSH):
        if one.grant.get("session") == name:
            store.drop_credential(PUSH, one.name)


def find_viewer(store: Store, secret: str, kind: str) -> Viewer | None:
    """The viewer that presents this secret of a token or of a session; None if it is unknown, ended or expired."""
    if not 1 <= len(secret) <= _LONGEST_SECRET or not secret.isascii():
        return None
    found, now = store.credential(digest_of(secret)), store.clock.now().wall_ms
    if found is None or found.kind != kind or not found.is_live(now):
        return None
    token = found if kind == TOKEN else _token(store, found.parent)
    if token is None or not token.is_live(now):
        return None
    session = found.name if kind == SESSION else None
    return Viewer(name=token.name, grant=parse_grant(token.grant), token=owner_of(token), session=session)


def owner_of(token: Credential) -> str:
    """The owner that its jobs record. A token that is made again under a name does not own the jobs of the old one."""
    return f"{token.name}.{token.digest[:_OWNER_DIGITS]}"


def digest_of(secret: str) -> str:
    """Stores look a credential up by its digest, so no comparison depends on how much of a secret is right."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _normal_code(typed: str) -> str | None:
    """Only what can be a code is looked up: `take_credential` would remove any other credential too."""
    letters = typed.strip().upper().translate(str.maketrans("OIL", "011", " -"))
    return letters if len(letters) == _CODE_LETTERS and set(letters) <= set(_LETTERS) else None


def _token(store: Store, name: str) -> Credential | None:
    return next((token for token in store.credentials(TOKEN) if token.name == name), None)


def _keep(
    store: Store, kind: str, name: str, parent: str, secret: str, expires_ms: int | None, grant: Grant | None
) -> NewSecret | None:
    credential = Credential(
        kind=kind, name=name, digest=digest_of(secret), parent=parent, made_ms=store.clock.now().wall_ms,
        expires_ms=expires_ms, grant={} if grant is None else grant.to_json(),
    )  # fmt: skip
    return NewSecret(credential=credential, secret=secret) if store.keep_credential(credential) else None
