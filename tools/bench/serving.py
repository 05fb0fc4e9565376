"""The server: a claim and a completion over the API, events to many followers, its rest and its start."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from mam.access.credentials import create_token
from mam.access.grant import EVERYTHING
from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import LABEL, PROMPT, Measured, Row, Rows
from tools.bench.filling import fill
from tools.bench.working import claim_and_complete

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROUNDS, WARM_UP = 200, 50
FOLLOWERS, EVENTS, REST_SECONDS = 200, 30, 10.0
EVENT_BUDGET, START_BUDGET, REST_BUDGET = 0.1, 1.0, 0.02


class BenchServer:
    """`mam serve` on a store, and a connection that is kept open."""

    def __init__(self, path: Path, token: str) -> None:
        begun = time.perf_counter()
        argv = [sys.executable, "-P", "-m", "mam", "serve", "--port", "0", "--store", f"sqlite://{path}"]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        self.login = self.process.stdout.readline().decode().strip()
        """The address that logs a browser in, once."""
        self.port = int(self.login.split(":")[2].partition("/")[0])
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.call("GET", "/health")
        self.start_seconds = time.perf_counter() - begun

    def call(self, method: str, path: str, body: object = None, **headers: str) -> dict[str, object]:
        data = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, f"/api/v1{path}", data, {**self.headers, **named})
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        found: dict[str, object] = json.loads(text)
        return found

    def claim_and_complete(self) -> None:
        job = self.call("POST", "/claims", {"label": LABEL})
        fence = {"mam_attempt": str(job["attempt"]), "mam_claim": str(job["claim_id"])}
        self.call("POST", f"/claims/{job['job_id']}/complete", {"result": "done"}, **fence)

    def follow(self) -> socket.socket:
        follower = socket.create_connection(("127.0.0.1", self.port))
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        follower.sendall(f"{head}Authorization: {self.headers['Authorization']}\r\n\r\n".encode())
        while b": mam" not in follower.recv(1 << 16):
            pass
        return follower

    def cpu_seconds(self) -> float:
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._connection.close()
        self.process.terminate()
        self.process.wait(60)


def measure_serving(folder: Path) -> Rows:
    path, alone = folder / "served.db", filled(folder / "alone.db")
    store = filled(path)
    token = create_token(store, "bench", EVERYTHING).secret
    server = BenchServer(path, token)
    try:
        things: dict[str, Callable[[], object]] = {
            "api": server.claim_and_complete,
            # With the audit log, which the server writes too.
            "alone": partial(claim_and_complete, Registry(alone, AuditLog(str(folder / "audit")))),
        }
        for thing in things.values():
            for _ in range(WARM_UP):
                thing()
        measured = Measured(ROUNDS, things)
        registry = Registry(store)
        followers = [server.follow() for _ in range(FOLLOWERS)]
        spread = sorted(_spread(registry, followers) for _ in range(EVENTS))[EVENTS // 2]
        used, begun = server.cpu_seconds(), time.perf_counter()
        time.sleep(REST_SECONDS)
        share = (server.cpu_seconds() - used) / (time.perf_counter() - begun)
        for follower in followers:
            follower.close()
    finally:
        server.close()
        store.close()
        alone.close()
    return [
        Row("API: claim + complete, kept connection", "the same in the process", measured.median("api"),
            measured.median("alone"), "at most 3"),
        Row(f"{FOLLOWERS} followers: from an act to the last of them", "100 ms", spread, EVENT_BUDGET, "at most 1"),
        Row(f"{FOLLOWERS} followers at rest: a second of the server", "2 % of it", share, REST_BUDGET, "at most 1"),
        Row("server: from the command to the first answer", "1 s", server.start_seconds, START_BUDGET, "at most 1"),
    ]  # fmt: skip


def filled(path: Path) -> SqliteStore:
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    fill(store, path, pending=1_000, ended=1_000)
    return SqliteStore(str(path))


def _spread(registry: Registry, followers: list[socket.socket]) -> float:
    """From a registration to the event at the last follower."""
    begun = time.perf_counter()
    registry.register(prompt=PROMPT, agent="nobody")
    waiting = set(followers)
    while waiting:
        for follower in select.select(list(waiting), [], [])[0]:
            if b"event: change" in follower.recv(1 << 16):
                waiting.discard(follower)
    return time.perf_counter() - begun
