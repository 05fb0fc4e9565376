"""A worker in this process, over a store of the test's choice."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from mam.agent_table import CODING_AGENTS
from mam.config.settings import Config
from mam.registry import Registry
from mam.work.context import WorkerContext
from mam.work.worker import DRAIN_NOW, Worker, WorkerOptions
from tests.work.support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.stores.port import Store

LABEL = "shell"


class Harness:
    """`job` registers one, `drain` works until nothing can be claimed, `at_work` works beside the test."""

    def __init__(self, store: Store, folder: Path, config: Config | None = None) -> None:
        self.registry = Registry(store)
        self.store = store
        self.folder = folder
        self.place = folder / "place"
        self.place.mkdir(exist_ok=True)
        self.config = config or Config()
        self.said: list[str] = []
        self.shown: list[str] = []

    def job(self, prompt: str, **choices: Any) -> str:
        """Recorded agents cannot ask, so their jobs may not, unless a test chooses otherwise."""
        choices = {"agent": "shell", "workdir": str(self.place), "origin_host": os.uname().nodename, **choices}
        choices = {"may_ask": choices["agent"] not in CODING_AGENTS, **choices}
        return self.registry.register(prompt=prompt, **choices).job.job_id

    def get(self, job_id: str) -> Job:
        return self.registry.get(job_id)

    def ended(self, prompt: str, **choices: Any) -> Job:
        """The job after a worker has had it."""
        job_id = self.job(prompt, **choices)
        self.drain(labels=(self.get(job_id).agent_session,))
        return self.get(job_id)

    @contextmanager
    def worker(self, lease: float = 60.0, grace: float = 1.0, **orders: Any) -> Iterator[Worker]:
        context = WorkerContext(
            self.registry, self.config, str(self.folder / "work"), lease_seconds=lease, grace_seconds=grace,
            say=self.said.append, show=self.shown.append,
        )  # fmt: skip
        try:
            yield Worker(context, WorkerOptions(**{"labels": (LABEL,), "owner": "shop", **orders}))
        finally:
            context.close()

    def drain(self, **orders: Any) -> int:
        with self.worker(**{"drain": DRAIN_NOW, **orders}) as worker:
            worker.run()
            return worker.taken

    @contextmanager
    def at_work(self, **orders: Any) -> Iterator[Worker]:
        """Handed back at the end if the test has not ended it."""
        with self.worker(**orders) as worker:
            thread = Thread(target=worker.run, daemon=True)
            thread.start()
            try:
                yield worker
            finally:
                worker.hand_back()
                thread.join(PATIENCE)
                assert not thread.is_alive(), f"the worker does not end: {self.said}"

    def until(self, job_id: str) -> Job:
        """When it has ended."""
        for _ in self.registry.follow([job_id], timeout=PATIENCE):
            pass
        return self.get(job_id)

    def output(self, job_id: str, attempt: int = 1) -> bytes:
        from mam.work.output_log import read
        from mam.work.state_dirs import output_path

        return b"".join(read(output_path(str(self.folder / "work"), job_id, attempt)))
