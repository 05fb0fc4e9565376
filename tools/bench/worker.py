"""What a worker adds to the process that it runs: per job, per report of its agent, at a cancel, and over time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from mam.audit.sync import AuditLog
from mam.config.settings import Config
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import ClaimRequest
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.work.context import WorkerContext
from mam.work.door.server import DoorServer
from mam.work.factory import DeferredAuditSink
from mam.work.worker import DRAIN_NOW, Worker, WorkerOptions
from tools.bench.common import LABEL, OWNER, Measured, Row, Rows
from tools.bench.starts import STARTS, installed, isolated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.stores.port import Store

ROUNDS, EACH = 8, 25
SCRIPT = "echo one line of output; echo work > out.txt"
TREE = "sleep 1000 & sh -c 'sleep 1000 & wait' & echo up > up; wait"
CROWD = """for i in $(seq 300); do setsid sh -c "trap '' TERM; while :; do :; done" & done; echo up > up; wait"""
CANCELS, CROWDS = 10, 3
GRACE = 1.0


class SizeRow(Row):
    def __init__(self, what: str, against: str, size: int, before: int, bar: str) -> None:
        self.cells = (what, _mib(size), against, _mib(before), f"**{size / before:.2f}**", bar)


def measure_worker(folder: Path, memory_jobs: int) -> Rows:
    stores: dict[str, Store] = {"files": files_store(folder / "jobs"), "SQLite": sqlite_store(folder / "jobs.db")}
    rows: Rows = []
    for name, store in stores.items():
        bench = BenchWorker(store, folder / f"{name}-work")
        rows += _overhead(name, bench, folder / f"{name}-bare")
        rows.append(_cancel(f"{name}: cancel of a running tree of four", bench, TREE, CANCELS))
        if name == "files":
            what = "cancel of 300 busy sessions that ignore SIGTERM, beyond the grace"
            rows.append(_cancel(what, bench, CROWD, CROWDS, GRACE))
        bench.context.close()
        store.close()
    rows += _door(folder / "door")
    rows.append(_memory(folder / "memory", memory_jobs))
    return rows


class BenchWorker:
    """A worker in this process, with everything that `mam worker` has."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "place"
        self.place.mkdir(parents=True)
        self.said: list[tuple[float, str]] = []
        self.gave_up = Event()
        self.shadow = AuditLog(str(folder / "logs"))
        self.registry = Registry(store, DeferredAuditSink(self.shadow))
        self.context = WorkerContext(
            self.registry, Config(), str(folder / "work"), grace_seconds=GRACE,
            say=self._hear,
        )  # fmt: skip

    def _hear(self, words: str) -> None:
        self.said.append((time.perf_counter(), words))
        if "cancelled" in words:
            self.gave_up.set()

    def register(self, prompt: str, artifacts: tuple[str, ...] = ()) -> str:
        choices: dict[str, Any] = {"label": LABEL, "workdir": str(self.place), "origin_host": os.uname().nodename}
        return self.registry.register(prompt=prompt, agent="shell", artifacts=artifacts, **choices).job.job_id

    def worker(self, *, drain: str | None) -> Worker:
        return Worker(self.context, WorkerOptions(labels=(LABEL,), owner=OWNER, drain=drain), self.shadow)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        worker = self.worker(drain=None)
        thread = Thread(target=worker.run)
        thread.start()
        yield
        worker.hand_back()
        thread.join()
        self.context.is_leaving = False


def _overhead(name: str, bench: BenchWorker, bare_folder: Path) -> Rows:
    """From the end of one job to the end of the next, with one hand and a queue, in turns with the bare process."""
    script = bench.folder / "script"
    script.write_text(SCRIPT, encoding="ascii")
    worked: list[float] = []
    bare: list[float] = []
    written: list[float] = []
    write = bare_write(bare_folder, 2000)
    for _ in range(ROUNDS):
        for _ in range(EACH + 1):
            bench.register(SCRIPT, ("out.txt",))
        bench.said.clear()
        bench.worker(drain=DRAIN_NOW).run()
        ends = [moment for moment, words in bench.said if words.endswith(": completed")]
        assert len(ends) == EACH + 1, bench.said
        worked += [later - earlier for earlier, later in pairwise(ends)]
        for _ in range(EACH):
            start = time.perf_counter()
            subprocess.run(["/bin/sh", str(script)], cwd=bench.place, check=True, capture_output=True)
            between = time.perf_counter()
            write()
            bare.append(between - start)
            written.append(time.perf_counter() - between)
    job, process, durable = map(statistics.median, (worked, bare, written))
    more = job - process
    return [
        Row(
            f"{name}: a `shell` job: claim, run, log, check, finish", "`subprocess.run` of its script", job, process,
            f"at most 10 ms more, is {more * 1e3:.2f} ms",
        ),
        Row(f"{name}: mam's part of it", "write, fsync, rename, fsync(dir) of 2000 bytes", more, durable, "none set"),
    ]  # fmt: skip


def _cancel(what: str, bench: BenchWorker, tree: str, times: int, grace: float = 0.0) -> Row:
    """From the word to the moment when the last process of the tree is gone and the worker is free again.

    The bench does not read the clock meanwhile: among hundreds of busy processes it would take the worker's turn.
    """
    took = []
    with bench.at_work():
        for _ in range(times):
            up = bench.place / "up"
            up.unlink(missing_ok=True)
            bench.gave_up.clear()
            job = bench.register(tree)
            _await(up.exists)
            start = time.perf_counter()
            bench.registry.cancel(job)
            bench.gave_up.wait()
            took.append(time.perf_counter() - start - grace)
    return Row(what, "a second", statistics.median(took), 1.0, "at most 1")


def _door(folder: Path) -> Rows:
    """As an agent says it: a whole command, which needs neither store nor settings."""
    folder.mkdir()
    python, mam = installed(folder / "venv")
    registry = Registry(sqlite_store(folder / "jobs.db"))
    registry.register(prompt="x", agent="shell", label=LABEL)
    job = registry.claim(ClaimRequest(label=LABEL, owner=OWNER, lease_seconds=600.0, supervised=True))
    assert job is not None
    with DoorServer(registry) as doors, doors.open(job.job_id, job.attempt, str(folder)) as door:
        environment = {**isolated(folder), **door.environment}

        def run(*command: str) -> None:
            subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        measured = Measured(
            STARTS,
            {
                "bare": lambda: run(python, "-c", "pass"),
                "publish": lambda: run(mam, "publish", "progress", "--detail", "half"),
                "complete": lambda: run(mam, "complete", "--result", "done"),
            },
        )
    registry.store.close()
    bare = measured.median("bare")
    return [
        Row(f"`mam {verb}` through the door", "`python -c pass`", measured.median(verb), bare, "at most 1.5")
        for verb in ("publish", "complete")
    ]


def _memory(folder: Path, jobs: int) -> Row:
    """Of a worker that has done a tenth of them, and all. On files: SQLite's own cache grows with its database, up to
    the 64 MiB that it is given."""
    folder.mkdir()
    store = files_store(folder / "jobs")
    registry = Registry(store)
    ids = [
        registry.register(prompt="echo hi", agent="shell", label=LABEL, workdir=str(folder)).job.job_id
        for _ in range(jobs)
    ]
    words = ["worker", "-s", LABEL, "--concurrency", "4", "--store", str(folder / "jobs")]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    with subprocess.Popen([sys.executable, "-m", "mam", *words], env=environment, stderr=subprocess.DEVNULL) as worker:
        _await(lambda: store.get(ids[jobs // 10]).status.ended, 0.05)
        before = _resident(worker.pid)
        _await(lambda: store.get(ids[-1]).status.ended, 0.05)
        after = _resident(worker.pid)
        worker.terminate()
    store.close()
    return SizeRow(
        f"memory of a worker after {jobs:,} jobs", f"after {jobs // 10:,}", after, before, "flat, at most 1.1"
    )


def files_store(path: Path) -> FilesStore:
    create_files_store(str(path))
    return FilesStore(str(path))


def sqlite_store(path: Path) -> SqliteStore:
    create_sqlite_store(str(path))
    return SqliteStore(str(path))


def _await(condition: Callable[[], bool], pause: float = 0.001) -> None:
    while not condition():
        time.sleep(pause)


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def bare_write(folder: Path, size: int) -> Callable[[], None]:
    """What any durable change of one file costs, in a directory that holds nothing else."""
    folder.mkdir()
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    data = b"x" * size

    def write() -> None:
        descriptor = os.open("record.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
        os.rename("record.tmp", "record.json", src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)

    return write
