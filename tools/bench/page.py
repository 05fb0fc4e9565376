"""The page: a list over very many jobs, a job with a long output, and what a first visit of each view takes."""

from __future__ import annotations

import http.client
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, Request, sync_playwright

from mam.access.credentials import create_token
from mam.access.grant import EVERYTHING
from mam.registry import Registry
from mam.stores.outputs import PIECE_LIMIT, AttemptId, OutputLimits, Piece
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import Row, Rows, SizeRow
from tools.bench.filling import fill
from tools.bench.serving import BenchServer
from tools.scene.server import SceneServer, start_browser
from tools.scene.store import make_scene

LIST_BUDGET, OUTPUT_BUDGET, SIZE_BUDGET = 0.3, 1.0, 100_000
OUTPUT_BYTES = 64 << 20
TURNS = 9
VIEWS = {"Needs me": "/", "Jobs": "/jobs", "a job": "/jobs/{flaky}", "Workers": "/workers", "Statistics": "/statistics"}


def measure_page(folder: Path, ended: int, pending: int) -> Rows:
    path = folder / "many.db"
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    fill(store, path, pending=pending, ended=ended)
    store = SqliteStore(str(path))
    job = _job_with_output(store)
    token = create_token(store, "bench", EVERYTHING).secret
    store.close()
    server = BenchServer(path, token)
    try:
        listed = statistics.median(_first_byte(server, "/jobs") for _ in range(TURNS))
        opened = statistics.median(_first_byte(server, f"/jobs/{job}") for _ in range(TURNS))
    finally:
        server.close()
    visits = _first_visits()
    return [
        Row(f"page: first byte of the list, {ended + pending:,} jobs", "300 ms", listed, LIST_BUDGET, "at most 1"),
        Row("page: first byte of a job with 64 MiB of output", "1 s", opened, OUTPUT_BUDGET, "at most 1"),
        SizeRow("page: a first visit of the largest view", "100 KB", max(size for _, _, size, _ in visits), SIZE_BUDGET,
                "at most 1"),
        *(Row(f"page: first paint of {view} ({count} requests, {size:,} bytes)", "1 s", paint / 1000, 1.0, "none set")
          for view, count, size, paint in visits),
    ]  # fmt: skip


def _first_byte(server: BenchServer, path: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    begun = time.perf_counter()
    connection.request("GET", path, headers={**server.headers, "Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    seconds = time.perf_counter() - begun
    assert answer.status == 200, answer.status
    answer.read()
    connection.close()
    return seconds


def _job_with_output(store: SqliteStore) -> str:
    """A running job of Claude Code that printed 64 MiB, all of which the store has."""
    registry = Registry(store)
    registry.register(prompt="print much", agent="claude-code", label="long")
    job = registry.pick("long", owner="bench")
    assert job is not None
    attempt = AttemptId(job_id=job.job_id, attempt=1, claim_id=job.claim_id)
    text = '{"type":"text","text":"%s"}' % ("x" * 900)
    line = f'{{"type":"assistant","message":{{"content":[{text}]}}}}\n'.encode()
    piece = line * (PIECE_LIMIT // len(line))
    limits = OutputLimits(head=OUTPUT_BYTES, tail=OUTPUT_BYTES)
    for start in range(0, OUTPUT_BYTES, len(piece)):
        store.outputs.append(attempt, Piece(start=start, data=piece), limits)
    return job.job_id


def _first_visits() -> list[tuple[str, int, int, float]]:
    """View, requests, bytes over the network and first paint in milliseconds, of a browser with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="mam-bench-page-") as directory:
        scene = make_scene(directory)
        scene.store.close()
        with SceneServer(directory) as server, sync_playwright() as playwright:
            browser = start_browser(playwright)
            first = browser.new_context()
            server.log_in(first)
            state = first.storage_state()
            found = []
            for view, path in VIEWS.items():
                page = browser.new_context(storage_state=state).new_page()
                found.append((view, *_first_visit(page, server.url + path.format(**scene.ids))))
                page.context.close()
            return found


def _first_visit(page: Page, address: str) -> tuple[int, int, float]:
    sizes: list[int] = []

    def note(request: Request) -> None:
        sizes.append(request.sizes()["responseBodySize"])

    page.on("requestfinished", note)
    page.goto(address, wait_until="load")
    page.wait_for_selector("main h1")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return len(sizes), sum(sizes), float(paint)
