"""Workers killed at random while jobs run: every job ends once, by an attempt that held it; no process is left.

MAM_WORKER_KILLS_JOBS=500 is the large dose; it also takes PostgreSQL. MAM_WORKER_KILLS_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from mam.config.settings import Config
from mam.location.stores import create_store, locate, open_store
from mam.registry import Registry
from mam.testing.conformance.base import check_journal, terminal_events
from tests.faults.killing import count_kill
from tests.waiting import await_that
from tests.work.support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.stores.port import Store

JOBS = int(os.environ.get("MAM_WORKER_KILLS_JOBS", "40"))
KINDS = ["files", "sqlite", "postgres"] if "MAM_WORKER_KILLS_JOBS" in os.environ else ["files", "sqlite"]
WORKERS, CONCURRENCY = 3, 3
LEASE = 2.0
SCRIPT = """
sh -c 'sleep {pause}; sleep 1000' &
sleep {pause}
echo "attempt $MAM_ATTEMPT"
kill $!
"""


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        url: str = request.getfixturevalue("database")
        return url
    return str(tmp_path / "jobs") if request.param == "files" else f"sqlite://{tmp_path}/jobs.db"


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    located = locate(address, None, Config())
    create_store(located, Config())
    store = open_store(located, Config())
    yield store
    store.close()


class KilledWorkers:
    """A few workers, one of which is killed and replaced now and then."""

    def __init__(self, address: str, home: Path) -> None:
        self._env = {"PATH": os.environ["PATH"], "HOME": str(home), "MAM_STORE": address}
        self._home = home
        self._workers = [self._start() for _ in range(WORKERS)]
        self.killed = 0

    def _start(self) -> subprocess.Popen[bytes]:
        words = ["worker", "-s", "kills", "--concurrency", str(CONCURRENCY), "--lease", str(LEASE), "--grace", "1"]
        return subprocess.Popen(
            [sys.executable, "-m", "mam", *words], env=self._env, cwd=self._home,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def kill_one(self, chance: random.Random) -> None:
        at = chance.randrange(WORKERS)
        self._workers[at].kill()
        self._workers[at].wait(PATIENCE)
        self._workers[at] = self._start()
        self.killed += 1
        count_kill()

    def close(self) -> list[int]:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        return [worker.wait(PATIENCE) for worker in self._workers]


def test_every_job_ends_once_and_no_process_is_left(address: str, store: Store, tmp_path: Path) -> None:
    seed = int(os.environ.get("MAM_WORKER_KILLS_SEED", random.randrange(1 << 32)))
    print("MAM_WORKER_KILLS_SEED", seed)
    chance = random.Random(seed)
    registry = Registry(store)
    jobs = [
        registry.register(
            prompt=SCRIPT.format(pause=round(chance.uniform(0.02, 0.6), 3)), agent="shell", label="kills",
            workdir=str(tmp_path), idle_timeout_sec=0,
        ).job.job_id
        for _ in range(JOBS)
    ]  # fmt: skip
    gang = KilledWorkers(address, tmp_path)
    try:
        open_dependencies = set(jobs)
        ends = time.monotonic() + PATIENCE + 3 * JOBS
        while open_dependencies:
            assert time.monotonic() < ends, f"{len(open_dependencies)} jobs never end"
            time.sleep(chance.uniform(0.1, 0.9))  # the random moment is the point
            if len(open_dependencies) > JOBS // 8:
                gang.kill_one(chance)
            open_dependencies = {job_id for job_id in open_dependencies if not store.get(job_id).status.ended}
    finally:
        codes = gang.close()
    # A worker that has just started may get the signal before it handles it.
    assert len(codes) == WORKERS
    assert set(codes) <= {0, -signal.SIGTERM}
    assert gang.killed >= 3
    check_ends(store, jobs)
    check_journal(store)
    await_no_process(jobs)


def check_ends(store: Store, jobs: list[str]) -> None:
    taken_over = 0
    for job_id in jobs:
        job = store.get(job_id)
        assert len(terminal_events(store, job_id)) == 1, job_id
        taken_over += job.attempt > 1
        if job.status == "completed":
            assert job.result == f"attempt {job.ended_attempt}", job_id
            assert job.ended_attempt == job.attempt, job_id
        else:
            assert (job.status, job.losses) == ("error", job.max_losses), job.reason
    assert taken_over, "no worker was killed at work"


def await_no_process(jobs: list[str]) -> None:
    """Guardians outlive their workers by as long as they need to end what those ran."""
    await_that(lambda: not those_of(jobs), "processes of the jobs were left behind")


def those_of(jobs: list[str]) -> list[str]:
    marks = {f"MAM_JOB_ID={job_id}".encode() for job_id in jobs}
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if marks.intersection(file.read().split(b"\0")):
                    found.append(name)
        except OSError:
            continue
    return found
