"""A link that is cut and comes back: the worker reports both, keeps its agent, and takes its next job at once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psycopg
import pytest

from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.needs import program
from tests.postgres.server import PrivateServer
from tests.waiting import await_that

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam

pytestmark = pytest.mark.external

HERE, THERE = "10.93.28.1", "10.93.28.2"


class Link:
    """A host in a namespace of its own, and the cable to it."""

    def __init__(self) -> None:
        number = os.getpid()
        self.name, self._near, far = f"mam-{number}", f"ma{number}", f"mb{number}"
        self._ip("netns", "add", self.name)
        self._ip("link", "add", self._near, "type", "veth", "peer", "name", far, "netns", self.name)
        self._ip("address", "add", f"{HERE}/24", "dev", self._near)
        self._ip("-n", self.name, "address", "add", f"{THERE}/24", "dev", far)
        self._ip("-n", self.name, "link", "set", far, "up")
        self.restore()

    def cut(self) -> None:
        self._ip("link", "set", self._near, "down")

    def restore(self) -> None:
        self._ip("link", "set", self._near, "up")

    def remove(self) -> None:
        self._ip("netns", "delete", self.name)

    def _ip(self, *arguments: str) -> None:
        subprocess.run([program("ip"), *arguments], check=True, capture_output=True)


@pytest.fixture
def link() -> Iterator[Link]:
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces")
    link = Link()
    yield link
    link.remove()


def test_a_host_keeps_its_agent_through_a_short_network_failure(mam: Mam, link: Link, tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="mam-pg-") as name, socket.socket() as free:
        os.chmod(name, 0o755)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        server = PrivateServer(Path(name) / "server", port=port)
        create_postgres_store(server.url())
        store = PostgresStore(server.url())
        registry = Registry(store)
        there = f"postgresql://mam@{HERE}:{port}/postgres?sslmode=disable"
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        first = registry.register(prompt=f"read go <{gate}", agent="shell", workdir=str(tmp_path)).job.job_id
        command = [program("ip"), "netns", "exec", link.name, sys.executable, "-m", "mam"]
        command += ["worker", "-s", "shell", "--lease", "20"]
        log_file = tmp_path / "log"
        with log_file.open("w", encoding="utf-8") as log:
            worker = subprocess.Popen(command, env={**mam.env, "MAM_STORE": there}, stderr=log, cwd=tmp_path)
        await_that(lambda: registry.get(first).status == "running")
        with psycopg.connect(server.url(), autocommit=True) as admin:
            theirs = f"SELECT 1 FROM pg_stat_activity WHERE client_addr = '{THERE}'".encode()
            link.cut()
            await_that(lambda: not admin.execute(theirs).fetchall(), "the server keeps connections into a cut link")
            await_that(lambda: "; trying until it works" in log_file.read_text(encoding="utf-8"), "no report")
        link.restore()
        gate.write_text("go\n", encoding="utf-8")
        await_that(lambda: registry.get(first).status == "completed")
        assert registry.get(first).attempt == 1
        second = registry.register(prompt="true", agent="shell", workdir=str(tmp_path)).job.job_id
        await_that(lambda: registry.get(second).status == "completed")
        worker.terminate()
        worker.wait()
        _, away, after = log_file.read_text(encoding="utf-8").rpartition("; trying until it works")
        assert away
        assert after.splitlines()[1] == "mam: the store answers again"
        store.close()
        server.stop()
