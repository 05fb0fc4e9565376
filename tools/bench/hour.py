"""`python -m tools.bench.hour [MINUTES [FOLLOWERS]]`: does the memory of the server and of the page stay flat?

`mam serve` has 200 followers of its events and two browsers on the list of jobs, while 10,000 events a minute arrive.
Every half minute a line says what the server and the page hold and how much of a core each has used since the last.
It is no part of `make bench`: it takes an hour. With MAM_BENCH_DIR=/dev/shm the disk does not slow the events down.
"""

from __future__ import annotations

import multiprocessing
import os
import selectors
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from mam.access.credentials import create_code, create_token
from mam.access.grant import EVERYTHING
from mam.access.viewer import LOCAL_TOKEN
from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.serving import BenchServer
from tools.bench.watched_pages import PlainPage, WatchedPage, cpu_seconds, resident
from tools.scene.server import start_browser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.jobs.record import Job

MINUTES, FOLLOWERS = 60.0, 200
EVENTS_A_MINUTE, SAMPLE_SECONDS = 10_000, 30.0
RUNNING, LIFE = 40, 100
"""Jobs that run at once, and the events after which one ends."""
MOST_AT_ONCE = 500
ROUND_SECONDS = 0.1
MEGABYTE = 1 << 20


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends what it has started
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    followers = int(sys.argv[2]) if len(sys.argv) > 2 else FOLLOWERS
    with tempfile.TemporaryDirectory(prefix="mam-hour-", dir=os.environ.get("MAM_BENCH_DIR")) as folder:
        path = Path(folder) / "served.db"
        create_sqlite_store(str(path))
        store = SqliteStore(str(path))
        token = create_token(store, "bench", EVERYTHING).secret
        server = BenchServer(path, token)
        counted = multiprocessing.Value("q", 0)
        following = multiprocessing.Process(target=follow, args=(server, followers, counted), daemon=True)
        following.start()
        try:
            with sync_playwright() as playwright:
                browser = start_browser(playwright)
                page = WatchedPage(browser, server)
                with PlainPage(server, create_code(store, LOCAL_TOKEN).secret, Path(folder)) as plain:
                    report(watch(server, page, plain, Load(Registry(store)), following, minutes))
                browser.close()
        finally:
            following.terminate()
            server.close()
        print(f"a follower got {counted.value / followers:,.0f} changes; the journal ends at {store.end_offset()}")
        store.close()


class Load:
    """Jobs that are registered, claimed, report their progress and end, by a clock."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._running: list[Job] = []
        self.done = 0
        """Acts, each of which is one entry of the journal and one event of the stream."""

    def catch_up(self, due: int) -> None:
        """On a slow disk it falls behind, and the lines say by how much."""
        most = self.done + MOST_AT_ONCE
        while self.done < min(due, most):
            if len(self._running) < RUNNING:
                self._registry.register(prompt="Work for an hour", agent="bench", label="bench")
                job = self._registry.pick("bench", owner="bench")
                assert job is not None
                self._running.append(job)
                self.done += 2
            turn = self.done % RUNNING % len(self._running)
            job = self._running[turn]
            if self.done // RUNNING % LIFE == turn:
                self._registry.complete(job.job_id, attempt=job.attempt, result="done")
                del self._running[turn]
            else:
                detail = f"step {self.done} of many"
                self._registry.publish(job.job_id, event="progress", detail=detail, attempt=job.attempt)
            self.done += 1


def follow(server: BenchServer, count: int, counted: multiprocessing.sharedctypes.Synchronized[int]) -> None:
    """Reads what many followers get, in a process of its own. Ends with an error when the server drops one."""
    with selectors.DefaultSelector() as waiting:
        for _ in range(count):
            waiting.register(server.follow(), selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                if not data:
                    raise SystemExit("the server dropped a follower")
                counted.value += data.count(b"event: change")


Samples = dict[str, list[float]]


def watch(
    server: BenchServer,
    page: WatchedPage,
    plain: PlainPage,
    load: Load,
    following: multiprocessing.Process,
    minutes: float,
) -> Samples:
    """Drives the load by the clock and looks at both every half minute. The first half minute warms up."""
    samples: Samples = {}
    begun = time.monotonic()
    looked, used = begun, (server.cpu_seconds(), cpu_seconds(plain.pid))
    while (now := time.monotonic()) < begun + minutes * 60:
        load.catch_up(int((now - begun) * EVENTS_A_MINUTE / 60))
        page.rest(ROUND_SECONDS)
        if now - looked < SAMPLE_SECONDS:
            continue
        assert following.is_alive(), "a follower was dropped"
        before, used = used, (server.cpu_seconds(), cpu_seconds(plain.pid))
        held = page.held()
        found = {
            "minute": (now - begun) / 60,
            "events": load.done,
            "server MB": resident(server.process.pid) / MEGABYTE,
            "server %": (used[0] - before[0]) / (now - looked) * 100,
            "heap MB": held["JSHeapUsedSize"] / MEGABYTE,
            "nodes": held["Nodes"],
            "listeners": held["JSEventListeners"],
            "renderer MB": resident(plain.pid) / MEGABYTE,
            "renderer %": (used[1] - before[1]) / (now - looked) * 100,
            "asked": page.asked,
            "live": page.is_live(),
        }
        looked = now
        print("  ".join(f"{name} {value:,.1f}" for name, value in found.items()), flush=True)
        for name, value in found.items():
            samples.setdefault(name, []).append(value)
    return samples


def report(samples: Samples) -> None:
    print(f"{'':12} {'first':>10} {'last':>10} {'peak':>10} {'median':>10}  slope of the second half")
    for name in [name for name in samples if name not in ("minute", "events", "asked", "live")]:
        values = samples[name]
        slope = slope_of(samples["minute"][len(values) // 2 :], values[len(values) // 2 :]) * 60
        row = (values[0], values[-1], max(values), statistics.median(values))
        print(f"{name:12} " + " ".join(f"{value:10,.1f}" for value in row) + f"  {slope:+,.2f} an hour")


def slope_of(places: Sequence[float], values: Sequence[float]) -> float:
    return statistics.linear_regression(places, values).slope if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
