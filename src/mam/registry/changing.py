"""The verbs that change one job. Each checks its input and passes a pure act to the store.

After each write the registry copies the new entries into the audit log; a failure of the log never fails the write.
"""

from __future__ import annotations

from functools import partial

from mam.errors import AnswerTooLate, AttemptNeeded, BadInput, ClaimLost, Refused, UnknownJob
from mam.jobs import acts, input_rules
from mam.jobs.ending import End
from mam.jobs.record import MAX_COUNT
from mam.jobs.status import COMPLETED, ERROR, RUNNING
from mam.jobs.sweep import backoff_seconds
from mam.registry.reading import ReadingRegistry
from mam.stores.common import new_claim_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from mam.jobs.acts import Fence
    from mam.jobs.change import AuditRecord, Change
    from mam.jobs.edit import Edit
    from mam.jobs.record import Job
    from mam.jobs.status import Status
    from mam.stores.port import Act, Store
    from mam.util.clock import Moment

    Check = Callable[[Job], None]
    """Raises if the job, as it is under the lock, is not the one that the caller means to change."""

    class AuditSink(Protocol):
        """Receives the writes of the registry; the audit log is one."""

        def follow(self, store: Store) -> None: ...

        def refused(self, store: Store, job_id: str, verb: str, why: str) -> None: ...

        def history(self, store: Store, job_id: str) -> list[AuditRecord]: ...


class ChangingRegistry(ReadingRegistry):
    """Verbs that change one job, as the holder of its claim or as its user."""

    def __init__(self, store: Store, audit: AuditSink | None = None, *, require_attempt: bool = False) -> None:
        super().__init__(store)
        self._audit = audit
        self._require_attempt = require_attempt

    def heartbeat(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, lease_seconds: float | None = None
    ) -> Job:
        """`attempt` and `claim_id` are the fence, here and below. A write without an attempt is unfenced."""
        fence = _fence(attempt, claim_id)
        if lease_seconds is not None:
            input_rules.check_seconds("lease", lease_seconds)
        act = partial(acts.heartbeat, **fence, lease_seconds=lease_seconds)
        return self._change(job, "heartbeat", act, unfenced=attempt is None)

    def complete(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, result: str | None = None
    ) -> Job:
        """Completes the job if its expected artifacts are present."""
        fence = _fence(attempt, claim_id)
        if result is not None:
            input_rules.check_text("result", result, input_rules.TEXT_LIMIT)
        if attempt is not None:
            ended = End(
                status=COMPLETED,
                attempt=attempt,
                claim_id=claim_id,
                result=result,
                checked=False,
                artifacts_unchecked=True,
            )
            return self.end(job, "complete", ended)
        act = partial(acts.complete, **fence, new_claim=new_claim_id(), result=result, artifacts_unchecked=True)
        return self._change(job, "complete", act, unfenced=True)

    def fail(
        self,
        job: str,
        *,
        reason: str,
        attempt: int | None = None,
        claim_id: str | None = None,
        retryable: bool = False,
    ) -> Job:
        fence = _fence(attempt, claim_id)
        input_rules.check_text("reason", reason, input_rules.REASON_LIMIT)
        if retryable:
            return self._fail_retryable(job, fence, reason)
        if attempt is not None:
            ended = End(status=ERROR, attempt=attempt, claim_id=claim_id, reason=reason)
            return self.end(job, "fail", ended)
        return self._change(job, "fail", partial(acts.fail, **fence, reason=reason), unfenced=True)

    def _fail_retryable(self, job: str, fence: Fence, reason: str) -> Job:
        chance, new_claim = self.store.clock.chance(), new_claim_id()
        return self._change(
            job, "fail",
            lambda found, now: acts.fail_retryable(
                found, now, **fence, new_claim=new_claim, reason=reason,
                delay_seconds=backoff_seconds(found.retries, chance),
            ),
            unfenced=fence["attempt"] is None,
        )  # fmt: skip

    def release(self, job: str, *, attempt: int | None = None, claim_id: str | None = None) -> Job:
        act = partial(acts.release, **_fence(attempt, claim_id))
        return self._change(job, "release", act, unfenced=attempt is None)

    def publish(
        self,
        job: str,
        *,
        event: str,
        detail: str = "",
        data: Mapping[str, Any] | None = None,
        attempt: int | None = None,
        claim_id: str | None = None,
    ) -> Job:
        """Stores one event; `started`, `completed` and `error` change the status."""
        act = partial(
            acts.publish, event=event, detail=detail, data=data or {}, **_fence(attempt, claim_id),
            new_claim=new_claim_id(), artifacts_unchecked=True,
        )  # fmt: skip
        return self._change(job, "publish", act, unfenced=attempt is None)

    def cancel(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, reason: str | None = None,
        check: Check | None = None,
    ) -> Job:  # fmt: skip
        fence = _fence(attempt, claim_id)
        if reason is not None:
            input_rules.check_text("reason", reason, input_rules.REASON_LIMIT)
        return self._change(job, "cancel", _checked(partial(acts.cancel, **fence, reason=reason), check))

    def mark_seen(self, job: str, *, by: str) -> Job:
        """Notes that a person looked at the outcome of an ended job."""
        return self._change(job, "seen", partial(acts.mark_seen, by=input_rules.check_name("name", by)))

    def edit(self, job: str, changes: Edit, *, by: str, seen: Job | None = None, check: Check | None = None) -> Job:
        """Changes a job that no worker has claimed; with `seen` only if it is still the job that the user read."""
        from mam.jobs.edit import edit

        if changes.prompt is not None:
            input_rules.check_prompt(changes.prompt)
        if changes.label is not None:
            input_rules.check_name("label", changes.label)
        if changes.priority is not None:
            input_rules.check_count("priority", changes.priority, least=-1000, most=1000)
        if changes.due_ms is not None:
            input_rules.check_moment("start time", changes.due_ms)
        return self._change(job, "edit", _checked(partial(edit, changes=changes, by=by, seen=seen), check))

    def mark_applied(self, job: str, *, by: str, facts: Mapping[str, str]) -> Job:
        """Notes that a person applied the changes of a job, and where."""
        act = partial(acts.mark_applied, by=input_rules.check_name("name", by), facts=facts)
        return self._change(job, "applied", act)

    def set_status(self, job: str, status: Status, *, attempt: int | None = None, claim_id: str | None = None) -> Job:
        act = partial(acts.set_status, to=status, **_fence(attempt, claim_id), new_claim=new_claim_id())
        return self._change(job, "status", act, unfenced=attempt is None)

    def next_seq(self, job: str) -> int:
        return self._change(job, "next_seq", acts.reserve_seq).last_seq

    def act(self, job_id: str, verb: str, act: Act) -> Job:
        """Applies a pure act to one job; `verb` names it in the audit log when it is refused."""
        return self._change(job_id, verb, act)

    def end(self, job: str, verb: str, ended: End) -> Job:
        """Ends a job as the holder of its claim."""

        def do(job_id: str, looked: bool) -> Job:
            return self.store.end_job(
                job_id, ended.replace(artifacts_unchecked=False, checked=True) if looked else ended
            )

        return self._apply(job, verb, do)

    def _change(self, job: str, verb: str, act: Act, *, unfenced: bool = False) -> Job:
        """Applies an act to one job. The setting `require_attempt` refuses an `unfenced` write to a running job."""
        if unfenced and self._require_attempt:
            act = partial(_unless_running, act)

        def do(job_id: str, looked: bool) -> Job:
            return self.store.change(job_id, partial(act, artifacts_unchecked=False) if looked else act)  # type: ignore[call-arg] # only what knows that raises ArtifactCheckNeeded

        return self._apply(job, verb, do)

    def _apply(self, job: str, verb: str, do: Callable[[str, bool], Job], *, looked: bool = False) -> Job:
        """Calls `do` with the id of the job, which may be given by a prefix, and whether its artifacts are checked."""
        try:
            changed = do(job if input_rules.is_job_id(job) else self.resolve(job), looked)
        except (acts.ArtifactCheckNeeded, AnswerTooLate, ClaimLost, UnknownJob) as stopped:
            changed = self._handle(stopped, job, verb, do)
        self._sync_audit()
        return changed

    def _handle(self, stopped: Exception, job: str, verb: str, do: Callable[[str, bool], Job]) -> Job:
        """Handles an act that was not applied: check artifacts and repeat, resolve a prefix, or log the refusal."""
        match stopped:
            case acts.ArtifactCheckNeeded(job=found):
                from mam.artifacts import check_artifacts

                check_artifacts(found)
                return self._apply(found.job_id, verb, do, looked=True)
            case UnknownJob():
                kept = self.store.archived(job) if input_rules.is_job_id(job) else None
                if kept is not None:
                    why = f"Job {job} is {kept.job.status} and archived; it can no longer be changed."
                    raise Refused(why=why) from None
                if (job_id := self.resolve(job)) != job:
                    return self._apply(job_id, verb, do)
            case ClaimLost() | AnswerTooLate() if self._audit is not None:
                self._audit.refused(self.store, str(stopped.facts.get("job", job)), verb, str(stopped))
        raise stopped

    def history(self, job: str) -> list[AuditRecord]:
        """What happened to a job, oldest first, from the audit log; its events alone if there is no log."""
        from mam.stores.common import event_lines
        from mam.stores.port import JobWithEvents

        found = self.get(job)
        lines = [] if self._audit is None else self._audit.history(self.store, found.job_id)
        return lines or list(event_lines(JobWithEvents(job=found, events=self.events(found.job_id))))

    def catch_up(self) -> None:
        """Copies into the audit log what was not written through a method of this class."""
        self._sync_audit()

    def _sync_audit(self) -> None:
        if self._audit is not None:
            self._audit.follow(self.store)


def _fence(attempt: int | None, claim_id: str | None) -> Fence:
    """A claim id without an attempt is refused, since it would not be compared."""
    if attempt is not None:
        input_rules.check_count("attempt", attempt, most=MAX_COUNT)
    if claim_id is not None:
        input_rules.check_claim_id(claim_id)
        if attempt is None:
            raise BadInput(why="a claim id goes with the attempt of the claim; give both")
    return {"attempt": attempt, "claim_id": claim_id}


def _unless_running(act: Act, found: Job, now: Moment, **given: Any) -> Change:
    """The act, unless the job is running: then a write must name the attempt."""
    if found.status is RUNNING:
        raise AttemptNeeded(job=found.job_id)
    return act(found, now, **given)


def _checked(act: Act, check: Check | None) -> Act:
    if check is None:
        return act

    def checked_act(found: Job, now: Moment, **given: Any) -> Change:
        check(found)
        return act(found, now, **given)

    return checked_act
