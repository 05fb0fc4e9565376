"""A store with mam in front of it, over stdio and HTTP, for clients that others wrote."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp import StdioServerParameters
from tests.serve.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.registry import Registry
    from tests.cli.command import Mam

STORES = ("files", "sqlite", "postgres")
TRANSPORTS = ("stdio", "http")


@dataclass
class World:
    mam: Mam
    address: str
    registry: Registry


@dataclass
class Address:
    url: str
    headers: dict[str, str]


@contextmanager
def server_of(world: World, transport: str) -> Iterator[Any]:
    if transport == "stdio":
        env = {**world.mam.env, "MAM_STORE": world.address}
        argv = ["-m", "mam", "mcp", "--worker"]
        yield StdioServerParameters(command=sys.executable, args=argv, env=env, cwd=str(world.mam.here))
        return
    with serving(world.registry) as served:
        token = served.token("read", "submit", "work", "answer")
        yield Address(f"{served.url}/mcp", {"authorization": f"Bearer {token}"})
