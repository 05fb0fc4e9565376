"""What happens in the demonstration, in order; each step waits for what the journal says, never for time to pass."""

from __future__ import annotations

from mam.demo.chronicle import Chronicle
from mam.demo.parts import (
    BOOK,
    CHAPTERS,
    CONCURRENCY,
    CRAWL,
    DOOMED,
    HELPERS,
    LABEL,
    REINDEX,
    SHORT_LEASE_SECONDS,
    parts,
)
from mam.errors import TimedOut
from mam.jobs.status import RUNNING
from mam.work.children import open_descendants
from mam.work.validator import trusted_validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.demo.chronicle import Life
    from mam.demo.stage import Stage

LONGEST_SECONDS = 150.0
"""It takes about fifteen; this much only on a machine that is busy with something else."""


class Story:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tell_at: Callable[[float, str], None] = lambda _at, _words: None
        self.ids: dict[str, str] = {}
        self.chronicle = Chronicle(stage.registry)
        self.tree_left: list[int] = []
        """Processes of the tree that outlived its being called off."""
        self.politely = False

    def play(self, tell: Callable[[float, str], None]) -> None:
        self._tell_at = tell
        self._register()
        self._lose_a_worker()
        self._cancel_a_tree()
        self._await(lambda: all(life.state.ended for life in self.chronicle.lives.values()), "every job has ended")
        self._tell("every job has ended; the workers are told to go")
        self.chronicle.end()
        self.tree_left = self._stage.await_gone(self.chronicle.of(self._tree()))
        self.politely = self._stage.dismiss()

    def _register(self) -> None:
        for part in parts():
            registration = self._stage.registry.register(
                prompt=part.script,
                agent="shell",
                label=LABEL,
                priority=part.priority,
                after=[self.ids[name] for name in part.after],
                artifacts=part.artifacts,
                validation=trusted_validation(self._stage.validator) if part.validated else None,
                workdir=self._stage.project,
                idle_timeout_sec=0,
            )
            self.ids[part.name] = registration.job.job_id
            self.chronicle.name(registration.job.job_id, part.name)
        self._await(lambda: len(self.chronicle.lives) == len(self.ids), "every job is in the journal")
        self._tell(f"{len(self.ids)} jobs are registered; {BOOK} comes after {', '.join(CHAPTERS)}")

    def _lose_a_worker(self) -> None:
        self._stage.hire(DOOMED, "--lease", str(SHORT_LEASE_SECONDS))
        self._await(lambda: bool(self._life(REINDEX).signs), f"{DOOMED} works on {REINDEX}")
        self._tell(f"worker {DOOMED} works on {REINDEX}, with a lease of {SHORT_LEASE_SECONDS} s")
        for name in HELPERS:
            self._stage.hire(name, "--concurrency", str(CONCURRENCY))
        self._tell(f"workers {' and '.join(HELPERS)} join, {CONCURRENCY} jobs at a time each")
        self._await(lambda: any(self._life(name).signs for name in CHAPTERS), "the fan-out makes progress")
        self.chronicle.deaths[DOOMED] = self.chronicle.now
        self._stage.kill(DOOMED)
        self._tell(f"{DOOMED} is killed with -9; nobody was told, the lease will tell")

    def _cancel_a_tree(self) -> None:
        self._await(lambda: len(self._tree()) == 3 and all(map(self._runs, self._tree())), f"{CRAWL} has its children")
        registry = self._stage.registry
        registry.cancel(self.ids[CRAWL], reason="enough was seen")
        for job_id in open_descendants(registry, self.ids[CRAWL]):
            registry.cancel(job_id, reason="enough was seen")
        self._tell(f"{CRAWL} is called off with the two jobs it had handed out")

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _life(self, name: str) -> Life:
        return self.chronicle.lives[self.ids[name]]

    def _tree(self) -> list[str]:
        root = self.ids[CRAWL]
        return [life.job_id for life in self.chronicle.lives.values() if root in (life.job_id, life.parent)]

    def _runs(self, job_id: str) -> bool:
        return self.chronicle.lives[job_id].state is RUNNING

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        if not self.chronicle.until(holds, LONGEST_SECONDS):
            dead = self._stage.dead()
            gone = f"; workers that ended by themselves: {', '.join(dead)}" if dead else ""
            raise TimedOut(what=f"It did not come to this: {what}{gone}", seconds=f"{LONGEST_SECONDS:g}")

    def _tell(self, words: str) -> None:
        self._tell_at(self.chronicle.now, words)
