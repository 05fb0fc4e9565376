"""A server in a thread of the test, over any registry, and a client for it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

import httpx

from mam.access.credentials import create_token
from mam.access.grant import check_grant
from mam.config.settings import Config
from mam.serve.app import create_app
from mam.serve.run import bind, run_listeners
from mam.serve.server import Server
from mam.serve.settings import ServeSettings, check_settings
from mam.serve.valet.app import create_valet_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.registry import Registry
    from mam.serve.run import Listener

PATIENCE = 60.0


class Serving:
    """A running server: its address, and clients with tokens of any scopes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.registry = server.registry
        self.url = server.settings.local_url
        self.valet_url: str | None = None
        self._clients: list[httpx.Client] = []
        self._tokens: dict[tuple[Any, ...], str] = {}

    def token(self, *scopes: str, name: str | None = None, **bounds: Any) -> str:
        key = (scopes, name, *sorted((what, tuple(given)) for what, given in bounds.items()))
        if key not in self._tokens:
            named = f"token-{len(self._tokens)}" if name is None else name
            self._tokens[key] = create_token(self.registry.store, named, check_grant(scopes, **bounds)).secret
        return self._tokens[key]

    def client(self, *scopes: str, name: str | None = None, **bounds: Any) -> httpx.Client:
        """A client of the API with a token; without scopes it has none."""
        headers = {"authorization": f"Bearer {self.token(*scopes, name=name, **bounds)}"} if scopes else {}
        client = httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=PATIENCE, trust_env=False)
        self._clients.append(client)
        return client

    def browser(self) -> httpx.Client:
        """A client that keeps cookies and begins at the root."""
        client = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def serving(
    registry: Registry, *, config: Config | None = None, with_valet: bool = False, **settings: Any
) -> Iterator[Serving]:
    wanted = check_settings(ServeSettings(port=0, **settings))
    listening = bind(wanted)
    server = Server(registry, wanted.replace(port=listening.getsockname()[1]), config or Config())
    listeners: list[Listener] = [(create_app(server), listening)]
    served = Serving(server)
    if with_valet:
        place = bind(wanted)
        own = wanted.replace(port=place.getsockname()[1])
        listeners.append((create_valet_app(server, own), place))
        served.valet_url = own.local_url
    started, loops = Event(), list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def run() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        await run_listeners(server, listeners, started.set, stop)

    thread = Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert started.wait(PATIENCE), "the server did not start"
    try:
        yield served
    finally:
        served.close()
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not stop"
