"""The steps of the demo. Each step waits for an entry of the journal, never for a fixed time."""

from __future__ import annotations

from mam.demo.demo_jobs import (
    BOOK,
    CHAPTERS,
    CONCURRENCY,
    CRAWL,
    KILLED_WORKER,
    LABEL,
    OTHER_WORKERS,
    REINDEX,
    SHORT_LEASE_SECONDS,
    demo_jobs,
)
from mam.demo.timelines import JobTimelines
from mam.errors import TimedOut
from mam.jobs.status import RUNNING
from mam.work.children import open_descendants
from mam.work.validator import trusted_validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.demo.sandbox import Sandbox
    from mam.demo.timelines import Timeline

LONGEST_SECONDS = 150.0
"""The demo takes about fifteen seconds; a busy machine needs longer."""


class Scenario:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._show_step: Callable[[float, str], None] = lambda _at, _words: None
        self.ids: dict[str, str] = {}
        self.timelines = JobTimelines(sandbox.registry)
        self.tree_left: list[int] = []
        """Processes of the tree that continued after the cancellation."""
        self.stopped_cleanly = False

    def run(self, show_step: Callable[[float, str], None]) -> None:
        self._show_step = show_step
        self._register()
        self._lose_a_worker()
        self._cancel_a_tree()
        self._await(
            lambda: all(timeline.state.ended for timeline in self.timelines.by_job.values()), "every job has ended"
        )
        self._step("every job has ended; the workers stop")
        self.timelines.end()
        self.tree_left = self._sandbox.wait_until_gone(self.timelines.processes_of(self._tree()))
        self.stopped_cleanly = self._sandbox.stop_workers()

    def _register(self) -> None:
        for demo_job in demo_jobs():
            registration = self._sandbox.registry.register(
                prompt=demo_job.script,
                agent="shell",
                label=LABEL,
                priority=demo_job.priority,
                after=[self.ids[name] for name in demo_job.after],
                artifacts=demo_job.artifacts,
                validation=trusted_validation(self._sandbox.validator) if demo_job.validated else None,
                workdir=self._sandbox.project,
                idle_timeout_sec=0,
            )
            self.ids[demo_job.name] = registration.job.job_id
            self.timelines.name(registration.job.job_id, demo_job.name)
        self._await(lambda: len(self.timelines.by_job) == len(self.ids), "every job is in the journal")
        self._step(f"{len(self.ids)} jobs are registered; {BOOK} runs after {', '.join(CHAPTERS)}")

    def _lose_a_worker(self) -> None:
        self._sandbox.start_worker(KILLED_WORKER, "--lease", str(SHORT_LEASE_SECONDS))
        self._await(lambda: bool(self._timeline(REINDEX).progress_at), f"{KILLED_WORKER} works on {REINDEX}")
        self._step(f"worker {KILLED_WORKER} runs {REINDEX}, with a lease of {SHORT_LEASE_SECONDS} s")
        for name in OTHER_WORKERS:
            self._sandbox.start_worker(name, "--concurrency", str(CONCURRENCY))
        self._step(f"workers {' and '.join(OTHER_WORKERS)} join, {CONCURRENCY} jobs at a time each")
        self._await(lambda: any(self._timeline(name).progress_at for name in CHAPTERS), "the fan-out makes progress")
        self.timelines.killed_at[KILLED_WORKER] = self.timelines.now
        self._sandbox.kill(KILLED_WORKER)
        self._step(f"{KILLED_WORKER} is killed with -9; its lease will expire")

    def _cancel_a_tree(self) -> None:
        self._await(lambda: len(self._tree()) == 3 and all(map(self._runs, self._tree())), f"{CRAWL} has its children")
        registry = self._sandbox.registry
        registry.cancel(self.ids[CRAWL], reason="no longer needed")
        for job_id in open_descendants(registry, self.ids[CRAWL]):
            registry.cancel(job_id, reason="no longer needed")
        self._step(f"{CRAWL} is cancelled with its two child jobs")

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _timeline(self, name: str) -> Timeline:
        return self.timelines.by_job[self.ids[name]]

    def _tree(self) -> list[str]:
        root = self.ids[CRAWL]
        return [
            timeline.job_id for timeline in self.timelines.by_job.values() if root in (timeline.job_id, timeline.parent)
        ]

    def _runs(self, job_id: str) -> bool:
        return self.timelines.by_job[job_id].state is RUNNING

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        if not self.timelines.until(holds, LONGEST_SECONDS):
            exited_workers = self._sandbox.exited_workers()
            gone = f"; workers that ended unexpectedly: {', '.join(exited_workers)}" if exited_workers else ""
            raise TimedOut(what=f"The demo did not reach this step: {what}{gone}", seconds=f"{LONGEST_SECONDS:g}")

    def _step(self, text: str) -> None:
        self._show_step(self.timelines.now, text)
