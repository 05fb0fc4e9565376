"""The browsers that are notified, what became of each message, and why this browser cannot be notified."""

from __future__ import annotations

from mam.access.subscriptions import own_subscription, subscribe, subscriptions_of, unsubscribe
from mam.errors import BadInput
from mam.jobs.notices import ACCEPTED, FAILED
from mam.push.keys import public_key
from mam.push.outcomes import outcomes
from mam.push.sending import check_packages
from mam.serve.pages.moments import When, ago
from mam.util.clock import iso_second
from mam.util.frozen import Frozen
from mam.util.hosts import is_loopback
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.registry import AuthorizedRegistry
    from mam.push.delivery import Delivery
    from mam.serve.server import Server

SUBSCRIBE, KEY, TEST, REMOVE = "subscribe", "key", "test", "remove"


class BrowserRow(Frozen):
    name: str
    token: str
    service: str
    made: When | None
    is_own: bool
    """Whether it belongs to the log-in that looks at the page."""


class OutcomeRow(Frozen):
    at: When | None
    job_id: str
    short: str
    notice: str
    to: str
    look: str
    words: str


class Notifications(Frozen):
    browsers: tuple[BrowserRow, ...]
    outcomes: tuple[OutcomeRow, ...]
    problem: str
    """Why no browser can be notified from here; empty if it can."""


def notifications_page(registry: AuthorizedRegistry, server: Server, host: str) -> Notifications:
    """`host` is the one under which the browser reached the server."""
    store, viewer = registry.registry.store, registry.viewer
    now_ms = store.clock.now().wall_ms
    browsers = tuple(
        BrowserRow(name=one.name, token=one_line(one.token), service=one_line(one.service),
                   made=ago(iso_second(one.made_ms), now_ms), is_own=one.session == viewer.session)
        for one in subscriptions_of(store, viewer)
    )  # fmt: skip
    rows = tuple(
        OutcomeRow(at=ago(one.at, now_ms), job_id=one.job_id, short=one.job_id[:8], notice=one.notice, to=one.to,
                   look=_LOOKS.get(one.outcome, "bad"), words=f"{one.outcome}: {one.why}" if one.why else one.outcome)
        for one in outcomes(registry.registry, registry.may_see)
    )  # fmt: skip
    return Notifications(browsers=browsers, outcomes=rows, problem=_problem(server, host))


_LOOKS = {ACCEPTED: "ok", FAILED: "wait"}


def _problem(server: Server, host: str) -> str:
    name = host.rpartition(":")[0].strip("[]") if not host.endswith("]") and ":" in host else host.strip("[]")
    if not server.settings.is_https and not is_loopback(name):
        return (
            "Browsers notify and install a page only over HTTPS, or on the host of the server itself. Put a proxy with"
            " TLS in front of `mam serve` and name it with --public-url, or give --tls-cert and --tls-key."
        )
    try:
        check_packages()
    except BadInput as missing:
        return str(missing)
    return ""


def server_key(registry: AuthorizedRegistry) -> str:
    """The key that a browser needs before it can subscribe; made now if there is none yet."""
    check_packages()
    return public_key(registry.registry.store)


def add(registry: AuthorizedRegistry, fields: dict[str, str]) -> None:
    given = {name: fields.get(name, "") for name in ("endpoint", "p256dh", "auth", "key")}
    subscribe(registry.registry.store, registry.viewer, **given)


def remove(registry: AuthorizedRegistry, name: str) -> None:
    store = registry.registry.store
    unsubscribe(store, own_subscription(store, registry.viewer, name).name)


def test(registry: AuthorizedRegistry, server: Server, name: str) -> Delivery:
    check_packages()
    return server.sender.send_test(own_subscription(registry.registry.store, registry.viewer, name))
