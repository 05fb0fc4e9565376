"""amqtt as a broker inside one command: loopback only, no storage, no login."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

from mam.errors import BadInput, BrokerUnavailable
from mam.machine.processes import not_ignored
from mam.util.extras import command_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def serve(host: str, port: int, ready: Callable[[], None]) -> None:
    """Run the broker until a signal ends it."""
    try:
        from amqtt.broker import Broker  # type: ignore[import-untyped]
        from amqtt.errors import BrokerError  # type: ignore[import-untyped]
    except ImportError:
        raise BadInput(why=f"`mam broker` needs the extra `broker`: {command_for('broker')}") from None
    logging.disable(logging.CRITICAL)

    async def run() -> None:
        broker = Broker(_settings(host, port))
        await broker.start()
        stopped = asyncio.Event()
        for number in (signal.SIGINT, *not_ignored(signal.SIGTERM, signal.SIGHUP)):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        ready()
        await stopped.wait()
        await broker.shutdown()

    try:
        asyncio.run(run())
    except (BrokerError, OSError) as error:
        cause = error.__cause__ or error
        # asyncio's own message repeats the address.
        why = os.strerror(cause.errno).lower() if isinstance(cause, OSError) and cause.errno else cause
        problem = f"cannot be started ({why})"
        raise BrokerUnavailable(broker=f"{host}:{port}", problem=problem) from None


def _settings(host: str, port: int) -> dict[str, Any]:
    return {
        "listeners": {"default": {"type": "tcp", "bind": f"{host}:{port}", "max_connections": 1000}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
