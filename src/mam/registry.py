"""The registry: every verb of the product is a method here, whichever store holds the jobs.

Doors parse and print; the lifecycle decides; the store makes it so. After each write the audit log is brought up to
date, best effort: what it shadows never fails because of it. What only some verbs need is imported by them, since every
verb is a fresh process.
"""

from __future__ import annotations

import time
from functools import lru_cache, partial

from mam.errors import AmbiguousId, AttemptNeeded, BadInput, ClaimLost, Refused, UnknownJob
from mam.jobs import acts, input_rules
from mam.jobs.ending import End
from mam.jobs.record import MAX_COUNT
from mam.jobs.status import COMPLETED, ERROR, RUNNING
from mam.jobs.sweep import backoff_seconds
from mam.stores.common import new_claim_id
from mam.stores.port import ClaimRequest, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from mam.jobs.activity import State
    from mam.jobs.acts import Fence
    from mam.jobs.change import AuditRecord, Change
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.jobs.status import Status
    from mam.stores.port import Act, Registration, Store
    from mam.util.clock import Moment

    class AuditSink(Protocol):
        """What the registry tells of its writes; the audit log is one."""

        def follow(self, store: Store) -> None: ...

        def refused(self, store: Store, job_id: str, verb: str, why: str) -> None: ...


CANDIDATES_SHOWN = 10
TOKEN_BYTES = 32
LONGEST_SLEEP_SECONDS = 30.0
"""Longest sleep of anyone who waits. News wakes sleepers earlier; this only bounds what a lost wake-up can cost."""


class Registry:
    def __init__(self, store: Store, audit: AuditSink | None = None, *, require_attempt: bool = False) -> None:
        self.store = store
        self._audit = audit
        self._require_attempt = require_attempt

    # -- reading -------------------------------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        """The one job id that begins with `text`. An id that is exactly that wins over longer ones."""
        if not input_rules.is_job_id(text):
            raise UnknownJob(job=repr(text[:80]), store=self.store.address)
        found = self.store.ids_with_prefix(text, CANDIDATES_SHOWN + 1)
        found = found or self.store.archived_ids_with_prefix(text, CANDIDATES_SHOWN + 1)
        return only_match(text, found, self.store.address)

    def get(self, job: str) -> Job:
        """The job, from the archive if it has been moved there. Scripts give whole ids, so the look-up of a prefix is
        only paid for by those who type one."""
        if input_rules.is_job_id(job):
            try:
                return self.get_exact(job)
            except UnknownJob:
                pass
        return self.get_exact(self.resolve(job))

    def events(self, job: str) -> list[AuditRecord]:
        """What was told about a job, wherever it is."""
        found = self.get(job)
        kept = self.store.archived(found.job_id) if found.status.ended else None
        return self.store.events(found.job_id) if kept is None else kept.events

    def get_exact(self, job_id: str) -> Job:
        """The job of exactly this id, wherever it is."""
        try:
            return self.store.get(job_id)
        except UnknownJob:
            kept = self.store.archived(job_id)
            if kept is None:
                raise
            return kept.job

    def select(self, query: Query) -> Iterator[Job]:
        return self.store.select(query)

    def select_archived(self, query: Query) -> Iterator[Job]:
        """The same among those that were moved into the archive."""
        from mam.stores.common import matches

        found = (kept.job for kept in self.store.archive_contents(newest_first=True))
        return (job for job in found if matches(query, job))

    def explain(self, job: str) -> tuple[Job, list[str]]:
        from mam.jobs.explain import ExplainContext, explain
        from mam.jobs.pause import blocking_pause

        found, now = self.get(job), self.store.clock.now()
        holder = self.store.holder(found.exclusive) if found.exclusive is not None else None
        around = ExplainContext(
            ahead=self.store.ahead_of(found),
            holder=None if holder == found.job_id else holder,
            pause=blocking_pause(self.store.pauses(), found, now),
            needed={job_id: self.store.newest(job_id) for job_id in found.after},
            last_event=self._last_event(found),
        )
        return found, explain(found, now, around)

    def state(self, job: Job) -> State:
        """What its agent is doing, who says so, and since when."""
        from mam.jobs.activity import job_state

        return job_state(job, self._last_event(job), self.store.clock.now())

    def _last_event(self, job: Job) -> dict[str, Any] | None:
        if job.status is not RUNNING:
            return None
        return next((line for line in reversed(self.store.events(job.job_id)) if "event" in line), None)

    # -- handing out ---------------------------------------------------------------------------------------------

    def register(
        self, *, prompt: str, agent: str, job_id: str | None = None, sign: bool = False, **choices: Any
    ) -> Registration:
        """Registers a job; `choices` are the parameters of `draft_job`."""
        from mam.jobs.draft import draft_job

        draft = draft_job(job_id=job_id or self.store.clock.new_id(), prompt=prompt, agent=agent, **choices)
        return self.register_draft(draft, sign=sign)

    def register_draft(self, draft: Job, *, sign: bool = False) -> Registration:
        """Registers a job that `draft_job` has checked; its `after` may hold prefixes of ids. With `sign` its events
        are signed with a token of its own."""
        if draft.after:
            from mam.jobs.dependency import check_after

            after = check_after(draft.job_id, [self.resolve(needed) for needed in draft.after])
            draft = draft.replace(after=after)
        if sign:
            self._keep_token(draft.job_id)
        registration = self.store.register(draft)
        self._sync_audit()
        return registration

    def _keep_token(self, job_id: str) -> None:
        """Before the job is there: one that shall be signed never speaks without a token."""
        from secrets import token_urlsafe

        self.store.keep_secrets(job_id, {"auth_token": token_urlsafe(TOKEN_BYTES)})

    def retry(self, job: str) -> Registration:
        """A new job that does an ended one's work again. Asked twice, it answers with the same one."""
        from mam.jobs.draft import draft_retry

        old = self.get(job)
        if not old.status.ended:
            raise Refused(why=f"Job {old.job_id} is {old.status}; only an ended job is retried.")
        new_id = self.store.clock.new_id()
        if "auth_token" in self.store.secrets(old.job_id):
            self._keep_token(new_id)
        registration = self.store.register(draft_retry(old, new_id))
        if not registration.created and registration.job.status.ended:
            new = registration.job
            raise Refused(
                why=f"Job {old.job_id} was retried as {new.job_id}, which is {new.status};"
                f" `mam retry {new.job_id[:8]}` goes on from there."
            )
        self._sync_audit()
        return registration

    def pick(
        self,
        label: str,
        *,
        owner: str,
        lease_seconds: float | None = None,
        wait: float = 0,
        session: tuple[str, str] | None = None,
    ) -> Job | None:
        """Claim the next job of a label, or None. With `wait`, sleep for one to come; nothing polls meanwhile. A
        `session` is an agent's id and its generation, which is refused once it was replaced."""
        input_rules.check_seconds("time to wait", wait)
        request = _check_request(label, owner, lease_seconds, session)
        if not wait:
            return self.claim(request)
        ends = time.monotonic() + wait
        while True:
            offset = self.store.end_offset()
            job = self.claim(request)
            if job is not None or (left := ends - time.monotonic()) <= 0:
                return job
            self.wait_for_change(offset, left)

    def claim(self, request: ClaimRequest) -> Job | None:
        """What a request gets. A claim settles a bounded number of due jobs; while that leaves some, and brought
        nothing, it is asked again, so that none is missed that may be claimed."""
        if request.claim_id is not None:
            input_rules.check_claim_id(request.claim_id)
        while True:
            job = self.store.claim(request)
            self._sync_audit()
            if job is not None or self.store.due_in() != 0:
                return job

    def announce(self, agent_id: str, generation_id: str) -> list[Job]:
        """This generation of a session counts from now on; the jobs that an older one held may be claimed again."""
        moved = self.store.announce(*_check_session(agent_id, generation_id))
        self._sync_audit()
        return moved

    def pause(self, pause: Pause) -> None:
        """Nobody claims what it concerns, until it is lifted or its time is over."""
        self.store.pause(pause)

    def resume(self, agent: str | None, label: str | None) -> bool:
        return self.store.resume(agent, label)

    # -- what a holder says --------------------------------------------------------------------------------------

    def heartbeat(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, lease_seconds: float | None = None
    ) -> Job:
        """`attempt` and `claim_id` are the fence, here and below: an attempt alone is compared by its number, both are
        compared both, and a write without an attempt is unfenced."""
        fence = _fence(attempt, claim_id)
        if lease_seconds is not None:
            input_rules.check_seconds("lease", lease_seconds)
        act = partial(acts.heartbeat, **fence, lease_seconds=lease_seconds)
        return self._change(job, "heartbeat", act, unfenced=attempt is None)

    def complete(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, result: str | None = None
    ) -> Job:
        """The work is done, if the artifacts that were expected are there."""
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
        """One event, stored; `started`, `completed` and `error` move the job."""
        act = partial(
            acts.publish, event=event, detail=detail, data=data or {}, **_fence(attempt, claim_id),
            new_claim=new_claim_id(), artifacts_unchecked=True,
        )  # fmt: skip
        return self._change(job, "publish", act, unfenced=attempt is None)

    # -- what anyone may say -------------------------------------------------------------------------------------

    def cancel(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, reason: str | None = None
    ) -> Job:
        fence = _fence(attempt, claim_id)
        if reason is not None:
            input_rules.check_text("reason", reason, input_rules.REASON_LIMIT)
        return self._change(job, "cancel", partial(acts.cancel, **fence, reason=reason))

    def set_status(self, job: str, status: Status, *, attempt: int | None = None, claim_id: str | None = None) -> Job:
        act = partial(acts.set_status, to=status, **_fence(attempt, claim_id), new_claim=new_claim_id())
        return self._change(job, "status", act, unfenced=attempt is None)

    def next_seq(self, job: str) -> int:
        return self._change(job, "next_seq", acts.reserve_seq).last_seq

    def sweep(self) -> list[Job]:
        settled = self.store.sweep()
        self._sync_audit()
        return settled

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        """Out of the way of the others; those that were moved. `get` still finds them."""
        moved = self.store.archive(job_ids)
        self._sync_audit()
        return moved

    # -- waiting -------------------------------------------------------------------------------------------------

    def follow(self, job_ids: Sequence[str], timeout: float | None = None) -> Iterator[Job]:
        """Each job now and whenever it changes, until all have ended; TimedOut when that takes too long."""
        from mam.waiting import follow

        if timeout is not None:
            input_rules.check_seconds("timeout", timeout)
        return follow(self, job_ids, timeout)

    def wait_for_change(self, offset: str, longest: float) -> None:
        """Sleeps until there may be news behind the offset, time decides something, or `longest` is over."""
        due = self.store.due_in()
        self.store.wait(
            offset, min(longest, LONGEST_SLEEP_SECONDS, LONGEST_SLEEP_SECONDS if due is None else due + 0.001)
        )

    def catch_up(self) -> None:
        """Brings the audit log up to date with writes that were not made through a method of this class."""
        self._sync_audit()

    # -- shared --------------------------------------------------------------------------------------------------

    def act(self, job_id: str, verb: str, act: Act) -> Job:
        """Any pure act on one job; `verb` names it in the audit log when it is refused."""
        return self._change(job_id, verb, act)

    def end(self, job: str, verb: str, ended: End) -> Job:
        """How the holder of a claim ends its job."""

        def do(job_id: str, looked: bool) -> Job:
            return self.store.end_job(
                job_id, ended.replace(artifacts_unchecked=False, checked=True) if looked else ended
            )

        return self._apply(job, verb, do)

    def _change(self, job: str, verb: str, act: Act, *, unfenced: bool = False) -> Job:
        """One act on one job. A holder's write without an attempt is `unfenced`, which a setting refuses."""
        if unfenced and self._require_attempt:
            act = partial(_unless_running, act)

        def do(job_id: str, looked: bool) -> Job:
            return self.store.change(job_id, partial(act, artifacts_unchecked=False) if looked else act)  # type: ignore[call-arg] # only what knows that raises ArtifactCheckNeeded

        return self._apply(job, verb, do)

    def _apply(self, job: str, verb: str, do: Callable[[str, bool], Job], *, looked: bool = False) -> Job:
        """What `do` does to the job of this id or beginning; `looked` is whether its artifacts have been found."""
        try:
            changed = do(job if input_rules.is_job_id(job) else self.resolve(job), looked)
        except (acts.ArtifactCheckNeeded, ClaimLost, UnknownJob) as stopped:
            changed = self._handle(stopped, job, verb, do)
        self._sync_audit()
        return changed

    def _handle(self, stopped: Exception, job: str, verb: str, do: Callable[[str, bool], Job]) -> Job:
        """What becomes of an act that could not simply be done."""
        match stopped:
            case acts.ArtifactCheckNeeded(job=found):
                from mam.artifacts import check_artifacts

                check_artifacts(found)
                return self._apply(found.job_id, verb, do, looked=True)
            case UnknownJob():
                kept = self.store.archived(job) if input_rules.is_job_id(job) else None
                if kept is not None:
                    said = f"Job {job} is {kept.job.status} and archived; nothing changes it any more."
                    raise Refused(why=said) from None
                if (job_id := self.resolve(job)) != job:
                    return self._apply(job_id, verb, do)
            case ClaimLost() if self._audit is not None:
                self._audit.refused(self.store, str(stopped.facts["job"]), verb, str(stopped))
        raise stopped

    def _sync_audit(self) -> None:
        if self._audit is not None:
            self._audit.follow(self.store)


def _fence(attempt: int | None, claim_id: str | None) -> Fence:
    """A claim id without its attempt would be compared with nothing."""
    if attempt is not None:
        input_rules.check_count("attempt", attempt, most=MAX_COUNT)
    if claim_id is not None:
        input_rules.check_claim_id(claim_id)
        if attempt is None:
            raise BadInput(why="a claim id goes with the attempt of the claim; give both")
    return {"attempt": attempt, "claim_id": claim_id}


def _unless_running(act: Act, found: Job, now: Moment, **given: Any) -> Change:
    """The act, unless somebody holds the job whose attempt it does not name."""
    if found.status is RUNNING:
        raise AttemptNeeded(job=found.job_id)
    return act(found, now, **given)


@lru_cache(16, typed=True)
def _check_request(
    label: str, owner: str, lease_seconds: float | None, session: tuple[str, str] | None
) -> ClaimRequest:
    """Whoever asks for work asks for the same again and again."""
    agent_id, generation_id = (None, None) if session is None else _check_session(*session)
    return ClaimRequest(
        label=input_rules.check_name("label", label),
        owner=input_rules.check_name("owner", owner),
        lease_seconds=None if lease_seconds is None else input_rules.check_seconds("lease", lease_seconds),
        agent_id=agent_id,
        generation_id=generation_id,
    )


def _check_session(agent_id: str, generation_id: str) -> tuple[str, str]:
    return (
        input_rules.check_session_id("the id of an agent", agent_id),
        input_rules.check_session_id("a generation", generation_id),
    )


def only_match(text: str, found: list[str], where: str) -> str:
    """The one of the ids that `text` means: the same, or else the only one that begins so."""
    if text in found or len(found) == 1:
        return text if text in found else found[0]
    if not found:
        raise UnknownJob(job=text, store=where)
    more = " …" if len(found) > CANDIDATES_SHOWN else ""
    raise AmbiguousId(prefix=text, candidates=found[:CANDIDATES_SHOWN], more=more)
