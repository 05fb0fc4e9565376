"""What all requests of one server share: the registry, the follower of the journal, the threads and the limits."""

from __future__ import annotations

import hashlib
import os
from functools import partial

import anyio
import anyio.to_thread

from mam.access.credentials import find_viewer
from mam.access.registry import AuthorizedRegistry
from mam.errors import NotLoggedIn
from mam.jobs.credential import SESSION, TOKEN
from mam.push.sending import Sender
from mam.serve.failures import FailureLimit
from mam.serve.hub import JournalHub
from mam.serve.settings import THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mam.access.viewer import Viewer
    from mam.agents.port import Directory
    from mam.config.settings import Config
    from mam.registry import Registry
    from mam.serve.settings import ServeSettings

    T = TypeVar("T")


class Server:
    def __init__(
        self,
        registry: Registry,
        settings: ServeSettings,
        config: Config,
        sessions: Callable[[], Directory] | None = None,
    ) -> None:
        self.registry = registry
        self.settings = settings
        self.config = config
        self.sessions = sessions
        """Opens the directory of live sessions of this host; None if there is none."""
        self.hub = JournalHub(registry)
        self.sender = Sender(registry, contact=settings.contact, allow_private=bool(config.push.get("private", False)))
        self.failed_logins = FailureLimit(most=10, seconds=600.0)
        self.failed_tokens = FailureLimit(most=100, seconds=60.0)
        self._defaults = job_defaults(config)
        self._threads = anyio.CapacityLimiter(THREADS)

    async def call(self, function: Callable[..., T], *given: Any, **named: Any) -> T:
        """Calls what blocks, in one of a few threads."""
        return await anyio.to_thread.run_sync(partial(function, *given, **named), limiter=self._threads)

    def rights_of(self, viewer: Viewer) -> AuthorizedRegistry:
        return AuthorizedRegistry(self.registry, viewer, self._defaults)

    def find_viewer(self, token: str | None, session: str | None) -> Viewer:
        """The viewer of a request; NotLoggedIn without a valid token or session. It blocks."""
        store = self.registry.store
        if token is not None:
            found = find_viewer(store, token, TOKEN)
            if found is None:
                raise NotLoggedIn(why="This token is not valid: it was revoked, it expired, or it never existed.")
            return found
        found = None if session is None else find_viewer(store, session, SESSION)
        if found is None:
            raise NotLoggedIn(why="Log in with a token, or with the address that `mam serve` prints.")
        return found

    @property
    def cookie_name(self) -> str:
        """Browsers share cookies between the ports of a host, so each store has its own."""
        name = f"mam-{hashlib.sha256(self.registry.store.address.encode()).hexdigest()[:10]}"
        return f"__Host-{name}" if self.settings.is_https and not self.settings.path_prefix else name


def job_defaults(config: Config) -> dict[str, Any]:
    """What the settings of this host say about a new job that does not say it itself."""
    from mam.bus.settings import broker_to_record

    broker = broker_to_record(config.broker) if config.broker.get("host") or os.environ.get("MQTT_BROKER") else None
    return {
        "on_idle": config.on_idle, "may_ask": config.questions.get("ask", True), "origin_host": os.uname().nodename,
        "broker": broker,
    }  # fmt: skip
