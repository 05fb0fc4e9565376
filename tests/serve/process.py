"""`mam serve` as a process."""

from __future__ import annotations

import select
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam

PATIENCE = 60.0


class ServerProcess:
    def __init__(self, mam: Mam, words: tuple[str, ...]) -> None:
        self.process = mam.start("serve", "--port", "0", *words)
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert readable, "the server printed nothing"
        self.printed = self.process.stdout.readline().decode().strip()
        if not self.printed:
            raise AssertionError(self.stop())
        self.url, _, self.code = self.printed.partition("/login#")
        self.port = int(self.url.split(":")[2].partition("/")[0])

    def client(self, token: str | None = None, path: str = "/api/v1") -> httpx.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url + path, headers=headers, timeout=PATIENCE, trust_env=False)

    def stop(self) -> str:
        """Ends it and returns what it said."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            _, said = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return said.decode()


@contextmanager
def server_process(mam: Mam, *words: str) -> Iterator[ServerProcess]:
    found = ServerProcess(mam, words)
    try:
        yield found
    finally:
        found.stop()
