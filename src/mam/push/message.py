"""One message to one browser: encrypted for it (RFC 8291), and signed for its push service (RFC 8292)."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

from mam.access.credentials import digest_of
from mam.jobs.notices import FAILURE, FRESH_SECONDS, QUESTION
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.subscriptions import Subscription

TEST = "test"
KINDS = (QUESTION, FAILURE, TEST)
SIGNED_SECONDS = 12 * 3600
_TOPIC_LETTERS = 32


class Message(Frozen):
    endpoint: str
    body: bytes
    headers: dict[str, str]


def make_message(to: Subscription, private: str, *, kind: str, job_id: str, contact: str, now: int) -> Message:
    """It names the job and the kind, and nothing of what the agent wrote. A later one of the same kind and job replaces
    one that was not delivered yet."""
    import http_ece
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from py_vapid import Vapid02

    body = http_ece.encrypt(
        to_bytes({"kind": kind, "job": job_id}), private_key=generate_private_key(SECP256R1()),
        dh=_decoded(to.p256dh), auth_secret=_decoded(to.auth), version="aes128gcm",
    )  # fmt: skip
    parts = urlsplit(to.endpoint)
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": now + SIGNED_SECONDS, "sub": contact}
    signed: dict[str, str] = Vapid02.from_pem(private.encode()).sign(claims)
    return Message(
        endpoint=to.endpoint, body=body,
        headers={
            **signed, "Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream",
            "TTL": str(FRESH_SECONDS), "Urgency": "high" if kind == QUESTION else "normal",
            "Topic": digest_of(f"{kind} {job_id}")[:_TOPIC_LETTERS],
        },
    )  # fmt: skip


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
