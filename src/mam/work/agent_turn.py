"""A coding agent's turn: what is heard of it while it runs, and what follows from that at the end."""

from __future__ import annotations

from contextlib import contextmanager

from mam.errors import MamError
from mam.util.clock import iso_milli
from mam.work.outcome import turn_failure
from mam.work.output_reader import OutputReader
from mam.work.reports.report import LIMIT
from mam.work.supervision import HOPELESS
from mam.work.usage_limits import UsageLimits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job, Json
    from mam.jobs.worker_acts import Ending
    from mam.registry import Registry
    from mam.work.adapters.port import Launch
    from mam.work.claim import Claim
    from mam.work.process.messages import LastMessage
    from mam.work.process.runner import Run
    from mam.work.reports.report import Report


class AgentTurn:
    """`begun` is the attempt's record of its run, which gets what is heard under `agent`; `prices` are those of the
    agent's tokens, if there are any."""

    def __init__(
        self, registry: Registry, claim: Claim, job: Job, launch: Launch, begun: Json, prices: Json | None
    ) -> None:
        assert launch.reader is not None
        self._registry = registry
        self._claim = claim
        self._job = job
        self._launch = launch
        self._begun = begun
        self._prices = prices
        self._reader = launch.reader()
        self._since = iso_milli(registry.store.clock.now().wall_ms)
        self._limits = UsageLimits(registry, claim, job)
        begun["agent"] = dict(launch.agent_record)

    @property
    def report(self) -> Report:
        return self._reader.report

    @contextmanager
    def reading(self, run: Run, grace: float) -> Iterator[None]:
        """While it lasts the run is listened to; after it all has been heard."""
        with OutputReader(self._reader, run, self._tell, lambda: run.stop(grace, HOPELESS)):
            yield
        report = self._reader.end()
        if self._launch.read_session_file is not None:
            self._launch.read_session_file(report, self._since)
        self._note()

    # -- the end ---------------------------------------------------------------------------------------------------

    def failure(self, last: LastMessage | None, said: Json | None) -> Ending | None:
        is_resumed = "resumed" in self._launch.agent_record
        is_checked = bool(self._job.expected_artifacts) or self._job.validation is not None
        return turn_failure(
            self.report, last, said, login=self._launch.login, is_resumed=is_resumed, is_checked=is_checked
        )

    def is_limited(self, said: Json | None) -> bool:
        """Whether a usage limit alone kept the agent from its end."""
        problem = self.report.problem
        return not said and not self.report.denied and problem is not None and problem.kind == LIMIT

    def result(self, said: Json | None) -> str | None:
        return str(said["result"]) if said and isinstance(said.get("result"), str) else self.report.last_message

    def wait_for_reset(self, facts: Json) -> Job:
        problem = self.report.problem
        assert problem is not None
        return self._limits.wait_for_reset(problem.text, problem.resets_at_ms, facts, answered=self.report.has_answered)

    def resume_others(self) -> None:
        self._limits.resume_others()

    # -- on the way ------------------------------------------------------------------------------------------------

    def _tell(self, words: str, report: Report) -> None:
        self._note()
        words = words or ("the model answers" if report.has_answered else "its session has begun")
        try:
            if report.has_answered:
                self.resume_others()
            self._claim.progress(words, dict(self._begun))
        except (MamError, OSError):
            return  # what is told on the way is not worth a job; the next renewal meets the same trouble

    def _note(self) -> None:
        self._begun["agent"] = {**self._launch.agent_record, **self.report.to_json(self._prices)}
