"""The inbox: ten thousand files at once, nothing at all, and one file."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mam.inbox.ingest import BATCH
from mam.inbox.loop import Inbox
from mam.inbox.settings import SETTLE_SECONDS, Settings
from mam.jobs.draft import draft_job
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import Row, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.stores.port import Store

WHERE = "acme/shop/main"
DROPS = 10
IDLE_SECONDS = 20.0
TAKEN_WITHIN = 0.3


def measure_inbox(folder: Path, files: int) -> Rows:
    rows: Rows = [_many(folder / "files", "files", files), _many(folder / "sqlite", "SQLite", files)]
    with _watched(folder / "watched") as (watcher, root):
        rows.append(_idle(watcher.pid))
        rows.append(_one(root))
    return rows


def _many(folder: Path, name: str, count: int) -> Row:
    """In turns with the same number of bare registrations, batch by batch."""
    folder.mkdir()
    inbox, store = _inbox(folder, _store(folder / "taken", name)), _store(folder / "bare", name)
    where = folder / "root" / "inbox" / WHERE
    where.mkdir(parents=True)
    for number in range(count):
        (where / f"{number}.prompt.md").write_text(f"do number {number}\n", encoding="ascii")
    start = time.perf_counter()
    ready = inbox.tree.scan().prompts
    taken, bare = time.perf_counter() - start, 0.0
    for first in range(0, count, BATCH):
        batch = ready[first : first + BATCH]
        start = time.perf_counter()
        with inbox._ledger.locked():
            inbox._record(inbox._ingester.ingest(batch))
        between = time.perf_counter()
        for seen in batch:
            store.register(
                draft_job(job_id=store.clock.new_id(), prompt=f"do {seen.rel}", agent="shell", label="inbox")
            )
        taken += between - start
        bare += time.perf_counter() - between
    assert len(inbox.open) == count
    return Row(
        f"{name}: a file taken, {count:,} at once", "a bare `register`", taken / count, bare / count, "at most 2"
    )


def _idle(pid: int) -> Row:
    before = _cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    spent = _cpu_seconds(pid) - before
    return Row(
        f"processor time of an idle `inbox watch`, in {IDLE_SECONDS:g} s", f"{IDLE_SECONDS:g} s", spent, IDLE_SECONDS,
        "none to speak of, at most 0.005",
    )  # fmt: skip


def _one(root: Path) -> Row:
    """From the moment when it may be taken to the moment when it is."""
    took = []
    folder = root / "inbox" / WHERE
    for number in range(DROPS):
        running = folder / f"{number}.running.md"
        hidden = folder / f".{number}"
        hidden.write_text("true", encoding="ascii")
        dropped = time.time()
        os.utime(hidden, (dropped, dropped))
        hidden.rename(folder / f"{number}.prompt.md")
        while not (running.exists() or (folder / f"{number}.done.md").exists()):
            time.sleep(0.001)
        took.append(time.time() - dropped - SETTLE_SECONDS)
    late = statistics.median(took)
    return Row("a drop is taken, after the time it has to settle", "300 ms", max(0.0, late), TAKEN_WITHIN, "at most 1")


def _store(path: Path, name: str) -> Store:
    if name == "SQLite":
        create_sqlite_store(str(path))
        return SqliteStore(str(path))
    create_files_store(str(path))
    return FilesStore(str(path))


def _inbox(folder: Path, store: Store) -> Inbox:
    root = folder / "root"
    root.mkdir()
    settings = Settings(
        root=str(root), agent="shell", uids=frozenset({os.geteuid()}), repos={}, settle_seconds=0.0,
        jobs_root=str(root / ".queue" / "jobs"),
    )  # fmt: skip
    inbox = Inbox(settings, Registry(store), lambda *_: None, lambda _: None)
    inbox.run_cycle()
    return inbox


@contextmanager
def _watched(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    (folder / "inbox" / WHERE).mkdir(parents=True)
    words = ["inbox", "watch", "--root", str(folder), "--agent", "shell", "--store", str(folder / "jobs")]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    with subprocess.Popen([sys.executable, "-m", "mam", *words], env=environment, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as watcher:  # fmt: skip
        time.sleep(3)  # until all of it is up; nothing says so
        yield watcher, folder
        watcher.terminate()


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
