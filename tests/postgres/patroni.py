"""Patroni with etcd, as Debian brings them: two PostgreSQL servers on loopback, one of which takes over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import psycopg

from tests.postgres.server import programs, unprivileged
from tests.waiting import await_that

TTL_SECONDS = 20
"""After this time without a sign of the primary the other one takes over; Patroni takes no less."""

LONGEST = 180.0
"""Only so that a broken test ends."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, so that it can be killed with all that it has started."""
    user = unprivileged() if os.geteuid() == 0 else None
    with log.open("wb") as file:
        return subprocess.Popen(command, user=user, cwd="/", stdout=file, stderr=file, start_new_session=True)


class Node:
    """A server and the Patroni that runs it."""

    def __init__(self, folder: Path, name: str, etcd: str) -> None:
        self.port = free_port()
        self._rest = free_port()
        self._folder = folder / name
        folder.mkdir(exist_ok=True)
        self._folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(self._folder, unprivileged())
        (folder / f"{name}.json").write_text(json.dumps(self._settings(name, etcd)), encoding="utf-8")
        command = ["patroni", str(folder / f"{name}.json")]
        self._process = started(command, folder / f"{name}.log")

    def _settings(self, name: str, etcd: str) -> dict[str, object]:
        role = {"username": "mam", "password": "secret"}
        return {
            "scope": "mam",
            "name": name,
            "restapi": {"listen": f"127.0.0.1:{self._rest}", "connect_address": f"127.0.0.1:{self._rest}"},
            "etcd3": {"host": etcd},
            "bootstrap": {
                "dcs": {"ttl": TTL_SECONDS, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": True},
                "initdb": [{"auth": "trust"}, {"username": "mam"}, "no-sync", {"encoding": "UTF8"}],
                "pg_hba": [
                    "local all all trust",
                    *(f"host {database} all 127.0.0.1/32 trust" for database in ("all", "replication")),
                ],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self._folder / "data"),
                "bin_dir": str(programs()),
                "pgpass": str(self._folder / "pgpass"),
                "authentication": {"superuser": role, "replication": role},
                "parameters": {"unix_socket_directories": str(self._folder), "fsync": "off"},
            },
        }

    def role(self) -> str:
        """What Patroni says: `master`, `replica`, `sync_standby`, or nothing yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._rest}/cluster", timeout=5) as answer:
                members = json.load(answer)["members"]
        except (OSError, ValueError, KeyError):
            return ""
        return next((str(one["role"]) for one in members if one["port"] == self.port), "")

    def kill(self) -> None:
        """As if the host had gone: Patroni, and the server, whose other processes end by themselves."""
        pid_file = self._folder / "data" / "postmaster.pid"
        postmaster = int(pid_file.read_text(encoding="ascii").split()[0])
        os.kill(postmaster, signal.SIGKILL)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


class Cluster:
    """etcd and two nodes, the second one a synchronous standby of the first."""

    def __init__(self, folder: Path) -> None:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        data = folder / "etcd"
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(data, unprivileged())
        command = ["etcd", "--data-dir", str(data), "--unsafe-no-fsync"]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        command += ["--initial-cluster", f"default={peer}"]
        self._etcd = started(command, folder / "etcd.log")
        etcd = client.removeprefix("http://")
        self.first = Node(folder, "first", etcd)
        await_that(lambda: self.first.role() in ("master", "leader"), "no primary", longest=LONGEST)
        self.second = Node(folder, "second", etcd)
        await_that(lambda: self.second.role() == "sync_standby", "no synchronous standby", longest=LONGEST)

    @property
    def url(self) -> str:
        ports = f"{self.first.port},{self.second.port}"
        return f"postgresql://mam@127.0.0.1,127.0.0.1/postgres?port={ports}&sslmode=disable"

    def await_takeover(self) -> None:
        """Until the second one accepts writes."""
        await_that(self._second_is_primary, "the standby does not take over", longest=LONGEST)

    def _second_is_primary(self) -> bool:
        try:
            with psycopg.connect(f"host=127.0.0.1 port={self.second.port} user=mam dbname=postgres") as connection:
                return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.OperationalError:
            return False

    def stop(self) -> None:
        self.second.stop()
        self.first.stop()
        self._etcd.terminate()
        self._etcd.wait()
