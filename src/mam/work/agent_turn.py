"""A coding agent's turn: mam reads its output while it runs, publishes progress, and judges the turn at its end."""

from __future__ import annotations

from contextlib import contextmanager

from mam.errors import MamError
from mam.util.clock import iso_milli
from mam.work.outcome import turn_failure
from mam.work.output_reader import OutputReader
from mam.work.reports.report import LIMIT
from mam.work.supervision import HOPELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mam.jobs.record import Job, Json
    from mam.jobs.worker_acts import Ending
    from mam.util.clock import Clock
    from mam.work.adapters.port import Launch
    from mam.work.claim import Claim
    from mam.work.process.messages import LastMessage
    from mam.work.process.runner import Run
    from mam.work.reports.report import AgentProblem, Report
    from mam.work.usage_limits import UsageLimits


class AgentTurn:
    """`begun` is the `run` of the record; its `agent` gets what the output reports. `prices` are those of the agent's
    tokens, if the user has set them."""

    def __init__(
        self,
        claim: Claim,
        limits: UsageLimits,
        clock: Clock,
        job: Job,
        launch: Launch,
        begun: Json,
        prices: Json | None,
    ) -> None:
        assert launch.reader is not None
        self._claim = claim
        self._job = job
        self._launch = launch
        self._begun = begun
        self._prices = prices
        self._reader = launch.reader()
        self._since = iso_milli(clock.now().wall_ms)
        self._limits = limits
        self.decided: Collection[str] = ()
        """The tools that a person or a rule refused, once the turn is over."""
        begun["agent"] = dict(launch.agent_record)

    @property
    def report(self) -> Report:
        return self._reader.report

    @contextmanager
    def reading(self, run: Run, grace: float) -> Iterator[None]:
        """Reads the output of the run inside the `with`; after it, the report is complete."""
        with OutputReader(self._reader, run, self._publish_progress, lambda: run.stop(grace, HOPELESS)):
            yield
        report = self._reader.end()
        if self._launch.read_session_file is not None:
            self._launch.read_session_file(report, self._since)
        self._note()

    # -- the end ---------------------------------------------------------------------------------------------------

    def failure(self, last: LastMessage | None, reported: Json | None) -> Ending | None:
        is_resumed = "resumed" in self._launch.agent_record
        is_checked = bool(self._job.expected_artifacts) or self._job.validation is not None
        return turn_failure(
            self.report, last, reported, login=self._launch.login, is_resumed=is_resumed, is_checked=is_checked,
            decided=self.decided,
        )  # fmt: skip

    def usage_limit(self, reported: Json | None) -> AgentProblem | None:
        """The usage limit, if nothing else kept the agent from its end."""
        problem = self.report.problem
        has_denied = any(tool not in self.decided for tool in self.report.denied)
        is_limit = not reported and not has_denied and problem is not None and problem.kind == LIMIT
        return problem if is_limit else None

    def result(self, reported: Json | None) -> str | None:
        if reported and isinstance(reported.get("result"), str):
            return str(reported["result"])
        return self.report.last_message

    # -- while it runs --------------------------------------------------------------------------------------------

    def _publish_progress(self, detail: str, report: Report) -> bool:
        self._note()
        detail = detail or ("the model answers" if report.has_answered else "its session has begun")
        try:
            if report.has_answered:
                self._limits.resume_others()
            self._claim.progress(detail, dict(self._begun))
        except (MamError, OSError):
            return False  # progress is not worth a job; the next renewal meets the same problem
        return True

    def _note(self) -> None:
        self._begun["agent"] = {**self._launch.agent_record, **self.report.to_json(self._prices)}
