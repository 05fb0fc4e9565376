"""Binds the address, runs the server until a signal, and drains it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket

import uvicorn

from mam.errors import BadInput, Refused
from mam.machine.listeners import holder_of_port
from mam.serve.app import create_app
from mam.serve.protocol import LimitedProtocol
from mam.serve.settings import CONNECTION_LIMIT, DRAIN_SECONDS, KEEP_ALIVE_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from mam.serve.server import Server
    from mam.serve.settings import ServeSettings

    Listener = tuple[Any, socket.socket]
    """An application and the socket at which it listens."""

BACKLOG = 512
FILES_WANTED = 4 * CONNECTION_LIMIT
SEND_BUFFER = 1 << 18
"""Bytes that the kernel keeps for a reader. It would keep megabytes for each of a thousand slow ones."""


def bind(settings: ServeSettings) -> socket.socket:
    """A listening socket; Refused names the process that has the port."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # connections inherit it
        listening.bind((settings.host, settings.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno in _TAKEN:
            holder = holder_of_port(settings.port)
            who = "" if holder is None else f" by {holder}"
            raise Refused(why=f"Port {settings.port} of {settings.host} is taken{who}; --port names another.") from None
        raise BadInput(why=f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None
    return listening


_TAKEN = (98, 48)
"""EADDRINUSE of Linux and of macOS."""


def serve(server: Server, listening: socket.socket, ready: Callable[[], None], more: Sequence[Listener] = ()) -> None:
    """Runs until SIGTERM or SIGINT. `ready` is called when requests are answered; `more` are other listeners of the
    same process."""
    listeners: list[Listener] = [(create_app(server), listening), *more]
    _allow_connections()

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, stop.set)
        await run_listeners(server, listeners, ready, stop)

    asyncio.run(run())


def _allow_connections() -> None:
    """Room for all connections and for the files of the store; systems often allow 1,024 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def run_listeners(
    server: Server, listeners: Sequence[Listener], ready: Callable[[], None], stop: asyncio.Event
) -> None:
    """Answers requests until `stop` is set, then lets those that run end."""
    _silence()
    running = [_Uvicorn(_config(server, app)) for app, _ in listeners]
    tasks = [
        asyncio.create_task(one.serve(sockets=[place])) for one, (_, place) in zip(running, listeners, strict=True)
    ]
    while not all(one.started or task.done() for one, task in zip(running, tasks, strict=True)):
        await asyncio.sleep(0.005)
    if all(one.started for one in running):
        ready()
        renewals = asyncio.create_task(_follow_renewals(server.settings, running))
        await stop.wait()
        renewals.cancel()
    server.hub.stop()  # which ends streams and waits
    for one in running:
        one.should_exit = True
    await asyncio.gather(*tasks)


async def _follow_renewals(settings: ServeSettings, running: Sequence[_Uvicorn]) -> None:
    from mam.serve.tls import follow_renewals

    contexts = [one.config.ssl for one in running if one.config.ssl is not None]
    if settings.tls_cert is not None and settings.tls_key is not None:
        await follow_renewals(settings.tls_cert, settings.tls_key, contexts)


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """`serve` handles them, for all listeners at once."""
        yield


def _config(server: Server, app: Any) -> uvicorn.Config:
    settings = server.settings
    return uvicorn.Config(
        app, http=LimitedProtocol, ws="none", lifespan="on", loop="asyncio", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, limit_concurrency=CONNECTION_LIMIT,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=DRAIN_SECONDS,
        ssl_certfile=settings.tls_cert, ssl_keyfile=settings.tls_key,
    )  # fmt: skip


def _silence() -> None:
    """uvicorn's log repeats parts of requests. A bug shows with MAM_DEBUG=1."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "asyncio", "python_multipart"):
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.handlers = [logging.StreamHandler() if os.environ.get("MAM_DEBUG") == "1" else logging.NullHandler()]
