"""The key pairs with which push services recognize this store (VAPID, RFC 8292), made on first use.

Two servers may make one at the same moment, so a store keeps every pair, and a browser is sent to with the one that it
accepts.
"""

from __future__ import annotations

import base64

from mam.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.port import Store

OWNER = ".push"
"""Under which the store keeps them among its secrets; no job has such an id."""


def public_key(store: Store) -> str:
    """The key for a new browser, in URL-safe base64."""
    kept = store.secrets(OWNER)
    if not kept:
        public, private = _new_pair()
        store.keep_secrets(OWNER, {public: private})
        kept = store.secrets(OWNER)
    return min(kept)


def private_key(store: Store, public: str) -> str:
    kept = store.secrets(OWNER)
    if public not in kept:
        raise Refused(why="This store no longer has the key that this browser accepts; notify the browser again.")
    return kept[public]


def _new_pair() -> tuple[str, str]:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from py_vapid import Vapid02

    pair = Vapid02()
    pair.generate_keys()
    point = pair.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).rstrip(b"=").decode(), pair.private_pem().decode()
