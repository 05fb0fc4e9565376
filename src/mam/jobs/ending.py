"""How the holder of a claim ends its job. Workers do this most, so an SQL store does it in one statement."""

from __future__ import annotations

from mam.jobs import acts, worker_acts
from mam.jobs.change import Change
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, ERROR, Status
from mam.util.clock import Moment
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.jobs.worker_acts import Ending


class End(Frozen):
    """The end that a holder writes; `attempt` and `claim_id` are its fence."""

    status: Status
    """completed or error."""
    attempt: int
    claim_id: str | None = None
    result: str | None = None
    reason: str | None = None
    checked: bool | None = None
    artifacts_unchecked: bool = False
    """Whether the expected artifacts must still be checked (acts.ArtifactCheckNeeded)."""
    supervised: bool = False
    """Whether the worker that supervises the job ends it, with its `run` and `checks`. An agent's own report does not
    end a supervised job; mam stores it."""
    only_if_unreported: bool = False
    """Whether the worker ends it only if the agent has reported nothing (worker_acts.OutcomeReported)."""
    run: Json | None = None
    checks: Json | None = None


def supervised_end(attempt: int, claim_id: str | None, ending: Ending, *, only_if_unreported: bool) -> End:
    """The end that a worker writes after its checks, when the job is not retried."""
    return End(
        status=COMPLETED if ending.reason is None else ERROR, attempt=attempt, claim_id=claim_id, result=ending.result,
        reason=ending.reason, checked=ending.checked, supervised=True,
        only_if_unreported=only_if_unreported, run=ending.run, checks=ending.checks,
    )  # fmt: skip


def end(job: Job, moment: Moment, ended: End) -> Change:
    """The rule for every store, whether it uses one statement or not."""
    if ended.supervised:
        ending = worker_acts.Ending(run=ended.run or {}, checks=ended.checks, result=ended.result, reason=ended.reason)
        return worker_acts.finish(
            job, moment, attempt=ended.attempt, claim_id=ended.claim_id, ending=ending, delay_seconds=0,
            only_if_unreported=ended.only_if_unreported,
        )  # fmt: skip
    if ended.status is COMPLETED:
        return acts.complete(
            job, moment, attempt=ended.attempt, claim_id=ended.claim_id, result=ended.result, checked=ended.checked,
            artifacts_unchecked=ended.artifacts_unchecked,
        )  # fmt: skip
    return acts.fail(job, moment, attempt=ended.attempt, claim_id=ended.claim_id, reason=ended.reason or "error")
