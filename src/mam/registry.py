"""The registry: the service with one method for each verb, over any store.

Commands and doors parse and print, acts decide, and the store writes. After each write the registry copies the new
entries into the audit log; a failure of the log never fails the write. Every verb is a new process, so a method imports
what only it needs.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache, partial

from mam.errors import AmbiguousId, AnswerTooLate, AttemptNeeded, BadInput, ClaimLost, NoSuchWorker, Refused, UnknownJob
from mam.jobs import acts, input_rules
from mam.jobs.ending import End
from mam.jobs.record import MAX_COUNT
from mam.jobs.status import COMPLETED, ERROR, OPEN, PENDING, RUNNING, WAITING
from mam.jobs.sweep import backoff_seconds
from mam.stores.common import new_claim_id
from mam.stores.port import ClaimRequest, Query
from mam.util.hosts import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from mam.jobs.activity import State
    from mam.jobs.acts import Fence
    from mam.jobs.change import AuditRecord, Change
    from mam.jobs.edit import Edit
    from mam.jobs.overview import Overview, Relative
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.jobs.status import Status
    from mam.jobs.workers import Holder, WorkerEntry
    from mam.stores.interest import Interest
    from mam.stores.port import Act, Registration, Store
    from mam.util.clock import Moment

    class AuditSink(Protocol):
        """Receives the writes of the registry; the audit log is one."""

        def follow(self, store: Store) -> None: ...

        def refused(self, store: Store, job_id: str, verb: str, why: str) -> None: ...


CANDIDATES_SHOWN = 10
TOKEN_BYTES = 32
LONGEST_SLEEP_SECONDS = 30.0
"""The longest sleep of a waiting process. New entries wake it earlier; this limits the cost of a lost wake-up."""


class Registry:
    def __init__(self, store: Store, audit: AuditSink | None = None, *, require_attempt: bool = False) -> None:
        self.store = store
        self._audit = audit
        self._require_attempt = require_attempt

    # -- reading --------------------------------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        """The one job id that begins with `text`. An exact match wins over longer ids."""
        if not input_rules.is_job_id(text):
            raise UnknownJob(job=repr(text[:80]), store=self.store.address)
        found = self.store.ids_with_prefix(text, CANDIDATES_SHOWN + 1)
        found = found or self.store.archived_ids_with_prefix(text, CANDIDATES_SHOWN + 1)
        return only_match(text, found, self.store.address)

    def get(self, job: str) -> Job:
        """The job, also from the archive. Scripts give whole ids, so prefixes are resolved only when no id matches."""
        if input_rules.is_job_id(job):
            try:
                return self.get_exact(job)
            except UnknownJob:
                pass
        return self.get_exact(self.resolve(job))

    def events(self, job: str) -> list[AuditRecord]:
        """The events of a job, also from the archive."""
        found = self.get(job)
        kept = self.store.archived(found.job_id) if found.status.ended else None
        return self.store.events(found.job_id) if kept is None else kept.events

    def get_exact(self, job_id: str) -> Job:
        """The job with exactly this id, also from the archive."""
        try:
            return self.store.get(job_id)
        except UnknownJob:
            kept = self.store.archived(job_id)
            if kept is None:
                raise
            return kept.job

    def select(self, query: Query) -> Iterator[Job]:
        return self.store.select(query)

    def open_jobs(self, labels: Iterable[str]) -> Iterator[Job]:
        """The jobs of these labels that have not ended."""
        for label in labels:
            yield from self.store.select(Query(statuses=OPEN, label=label))

    def select_archived(self, query: Query) -> Iterator[Job]:
        """As `select`, among archived jobs."""
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
            host=os.uname().nodename,
            workers=tuple(worker.name for worker in self.live_workers() if worker.serves(found))
            if found.status is PENDING
            else (),
        )
        return found, explain(found, now, around)

    def overview(self, job: str) -> Overview:
        """Everything about a job that a person asks for first."""
        from mam.jobs.overview import Overview

        found, why = self.explain(job)
        children = self.store.children(found.job_id)
        relatives = [
            self._relative("retry_of", found.retry_of),
            self._relative("retried_as", found.job_id if self.is_retried(found) else None),
            self._relative("parent", found.parent_id),
            *(self._relative("after", job_id) for job_id in found.after),
            *(self._relative("child", job_id) for job_id in children[:CANDIDATES_SHOWN]),
        ]
        chain = tuple(relative for relative in relatives if relative is not None)
        return Overview(job=found, why=why, state=self.state(found), chain=chain, children=len(children))

    def _relative(self, relation: str, job_id: str | None) -> Relative | None:
        """Another job, as it is now; `retried_as` is the last retry."""
        from mam.jobs.overview import Relative

        if job_id is None:
            return None
        try:
            found = self.store.newest(job_id) if relation == "retried_as" else self.get_exact(job_id)
        except UnknownJob:
            found = None
        return Relative(
            relation=relation,
            job_id=job_id if found is None else found.job_id,
            status=None if found is None else found.status,
        )

    def state(self, job: Job) -> State:
        """What its agent is doing, according to which source, and since when."""
        from mam.jobs.activity import job_state

        return job_state(job, self._last_event(job), self.store.clock.now())

    def _last_event(self, job: Job) -> dict[str, Any] | None:
        if job.status is not RUNNING:
            return None
        return next((line for line in reversed(self.store.events(job.job_id)) if "event" in line), None)

    # -- registering and claiming ---------------------------------------------------------------------------------

    def register(
        self,
        *,
        prompt: str,
        agent: str,
        job_id: str | None = None,
        sign: bool = False,
        auth_token: str | None = None,
        **choices: Any,
    ) -> Registration:
        """Registers a job; `choices` are the parameters of `draft_job`."""
        from mam.jobs.draft import draft_job

        draft = draft_job(job_id=job_id or self.store.clock.new_id(), prompt=prompt, agent=agent, **choices)
        return self.register_draft(draft, sign=sign, auth_token=auth_token)

    def register_draft(self, draft: Job, *, sign: bool = False, auth_token: str | None = None) -> Registration:
        """Registers a job that `draft_job` has checked; its `after` may hold prefixes of ids."""
        if draft.after:
            from mam.jobs.dependency import check_after

            after = check_after(draft.job_id, [self.resolve(needed) for needed in draft.after])
            draft = draft.replace(after=after)
        self.prepare_signing(draft, sign=sign, auth_token=auth_token)
        registration = self.store.register(draft)
        self._sync_audit()
        return registration

    def prepare_signing(self, draft: Job, *, sign: bool = False, auth_token: str | None = None) -> None:
        """Stores the token that signs the job's events: `auth_token`, otherwise a new one if `sign` is set or the job's
        broker is on another host. It is stored before the job, so that every event can be signed."""
        host = draft.broker.get("host")
        if auth_token is not None:
            self.store.keep_secrets(draft.job_id, {"auth_token": input_rules.check_auth_token(auth_token)})
        elif sign or (host and not is_loopback(host)):
            self._keep_token(draft.job_id)

    def _keep_token(self, job_id: str) -> None:
        from secrets import token_urlsafe

        self.store.keep_secrets(job_id, {"auth_token": token_urlsafe(TOKEN_BYTES)})

    def retry(self, job: str, *, continues: bool = False) -> Registration:
        """Registers a new job with the work of an ended one, in the same conversation if `continues`. A repeated call
        returns the same new job."""
        from mam.jobs.draft import draft_retry

        old = self.get(job)
        if not old.status.ended:
            raise Refused(why=f"Job {old.job_id} is {old.status}; only an ended job is retried.")
        if continues:
            return self._retry_in_conversation(old)
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

    def continue_job(self, job: str, *, prompt: str, **choices: Any) -> Registration:
        """Registers a job that continues the conversation of another, behind the last job of its chain. `choices` are
        parameters of `draft_job`. A repeated call with the same `key`, or the same `retry_of`, returns the same job."""
        from mam.agent_table import agent_kind
        from mam.jobs.continuation import check_can_be_continued, draft_continuation

        last, new_id = self.get(job), self.store.clock.new_id()
        if "auth_token" in self.store.secrets(last.job_id):
            self._keep_token(new_id)
        while True:
            earlier = [self.store.newest(job_id) for job_id in last.after] if last.continues else []
            chain = [*(one for one in earlier if one is not None), last]
            check_can_be_continued(last, keeps_conversations=agent_kind(last.agent).is_coding_agent)
            draft = draft_continuation(chain, new_id, prompt, **choices)
            registration = self.store.register(draft)
            found = registration.job
            is_repeat = found.key == draft.key is not None or found.retry_of == draft.retry_of is not None
            if registration.created or is_repeat:
                self._sync_audit()
                return registration
            last = found  # the continuation of `last`: the chain is longer than this call knew

    def _retry_in_conversation(self, old: Job) -> Registration:
        work: dict[str, Any] = {"artifacts": old.expected_artifacts, "validation": old.validation}
        registration = self.continue_job(old.job_id, prompt=old.prompt, retry_of=old.job_id, **work)
        new = registration.job
        if new.continues is None:
            why = f"job {old.job_id} was retried as {new.job_id}, from the beginning"
            raise Refused(why=f"{why[0].upper()}{why[1:]}; `mam continue {new.job_id[:8]}` adds work to that one.")
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
        """Claims the next job of a label, or returns None. With `wait` it sleeps until a job comes, without polling. A
        `session` is the id of an agent and its generation, which is refused once it has been replaced."""
        input_rules.check_seconds("time to wait", wait)
        request = _check_request(label, owner, lease_seconds, session)
        if not wait:
            return self.claim(request)
        from mam.stores.interest import Interest

        ends, interest = time.monotonic() + wait, Interest(labels=(label,))
        while True:
            offset = self.store.end_offset()
            job = self.claim(request)
            if job is not None or (left := ends - time.monotonic()) <= 0:
                return job
            self.wait_for_change(offset, left, interest)

    def claim(self, request: ClaimRequest) -> Job | None:
        """Claims a job for a request. One claim settles a bounded number of due jobs, so it is repeated while jobs are
        due and none was claimed."""
        if request.claim_id is not None:
            input_rules.check_claim_id(request.claim_id)
        while True:
            job = self.store.claim(request)
            self._sync_audit()
            if job is not None or self.store.due_in() != 0:
                return job

    def announce(self, agent_id: str, generation_id: str) -> list[Job]:
        """Makes this generation of a session the current one; the jobs of an older one return to pending."""
        moved = self.store.announce(*_check_session(agent_id, generation_id))
        self._sync_audit()
        return moved

    def pause(self, pause: Pause) -> None:
        """Stops claims for the jobs that the pause covers, until it is lifted or ends."""
        self.store.pause(pause)

    def resume(self, agent: str | None, label: str | None) -> bool:
        """Lifts a pause. With the pause of an agent end the waits of the jobs that met its usage limit."""
        was_paused = self.store.resume(agent, label)
        if was_paused and agent is not None and label is None:
            self._end_waits_for_reset(agent)
        return was_paused

    def _end_waits_for_reset(self, agent: str) -> None:
        from mam.jobs.usage_limit import RESET, end_wait

        for job in self.store.select(Query(statuses=frozenset({WAITING}))):
            if job.agent == agent and job.waiting_for == RESET:
                self.act(job.job_id, "resume", end_wait)

    # -- workers ---------------------------------------------------------------------------------------------------

    def live_workers(self) -> list[WorkerEntry]:
        now = self.store.clock.now()
        return sorted(
            (worker for worker in self.store.workers() if worker.is_live(now)), key=lambda worker: worker.name
        )

    def holders(self) -> list[Holder]:
        """The live workers, and the owners of claims that no live worker has, each with the jobs that they hold."""
        from mam.jobs.workers import holders

        return holders(self.live_workers(), self.store.select(Query(statuses=frozenset({RUNNING}))))

    def ask_worker(self, name: str, what: str) -> WorkerEntry:
        """Asks a live worker to drain or to stop; it obeys when it next renews its entry."""
        live = {worker.name: worker for worker in self.live_workers()}
        if name not in live or not self.store.ask_worker(name, what):
            raise NoSuchWorker(worker=repr(name[:200]))
        return live[name]

    # -- writing as the holder of a claim -------------------------------------------------------------------------

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

    # -- writing without a claim ----------------------------------------------------------------------------------

    def cancel(
        self, job: str, *, attempt: int | None = None, claim_id: str | None = None, reason: str | None = None
    ) -> Job:
        fence = _fence(attempt, claim_id)
        if reason is not None:
            input_rules.check_text("reason", reason, input_rules.REASON_LIMIT)
        return self._change(job, "cancel", partial(acts.cancel, **fence, reason=reason))

    def mark_seen(self, job: str, *, by: str) -> Job:
        """Notes that a person looked at the outcome of an ended job."""
        return self._change(job, "seen", partial(acts.mark_seen, by=input_rules.check_name("name", by)))

    def edit(self, job: str, changes: Edit, *, by: str, seen: Job | None = None) -> Job:
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
        return self._change(job, "edit", partial(edit, changes=changes, by=by, seen=seen))

    def mark_applied(self, job: str, *, by: str, facts: Mapping[str, str]) -> Job:
        """Notes that a person applied the changes of a job, and where."""
        act = partial(acts.mark_applied, by=input_rules.check_name("name", by), facts=facts)
        return self._change(job, "applied", act)

    def is_retried(self, job: Job) -> bool:
        newest = self.store.newest(job.job_id)
        return newest is not None and newest.job_id != job.job_id

    def needs_look(self, job: Job) -> bool:
        """Whether it failed, and a person has neither looked at it nor retried it."""
        return job.status is ERROR and job.seen is None and not self.is_retried(job)

    def set_status(self, job: str, status: Status, *, attempt: int | None = None, claim_id: str | None = None) -> Job:
        act = partial(acts.set_status, to=status, **_fence(attempt, claim_id), new_claim=new_claim_id())
        return self._change(job, "status", act, unfenced=attempt is None)

    def next_seq(self, job: str) -> int:
        return self._change(job, "next_seq", acts.reserve_seq).last_seq

    def sweep(self) -> list[Job]:
        settled = self.store.sweep()
        self._sync_audit()
        return settled

    def sweep_if_due(self) -> None:
        """For readers: a sweep takes the store's lock, so it runs only if a lease, a wait or a pause has ended."""
        due_seconds = self.store.due_in()
        if due_seconds is not None and due_seconds <= 0:
            self.sweep()

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        """Moves ended jobs into the archive and returns the ids that were moved. `get` still finds them."""
        moved = self.store.archive(job_ids)
        self._sync_audit()
        return moved

    # -- waiting --------------------------------------------------------------------------------------------------

    def follow(self, job_ids: Sequence[str], timeout: float | None = None) -> Iterator[Job]:
        """Yields each job now and after each change, until all have ended; TimedOut after `timeout` seconds."""
        from mam.waiting import follow

        if timeout is not None:
            input_rules.check_seconds("timeout", timeout)
        return follow(self, job_ids, timeout)

    def wait_for_change(self, offset: str, longest: float, interest: Interest | None = None) -> None:
        """Sleeps until there may be entries behind the offset, a job is due, or `longest` seconds are over."""
        due = self.store.due_in()
        self.store.wait(
            offset, min(longest, LONGEST_SLEEP_SECONDS, LONGEST_SLEEP_SECONDS if due is None else due + 0.001), interest
        )

    def catch_up(self) -> None:
        """Copies into the audit log what was not written through a method of this class."""
        self._sync_audit()

    # -- shared ---------------------------------------------------------------------------------------------------

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


@lru_cache(16, typed=True)
def _check_request(
    label: str, owner: str, lease_seconds: float | None, session: tuple[str, str] | None
) -> ClaimRequest:
    """Cached: a worker repeats the same request."""
    agent_id, generation_id = (None, None) if session is None else _check_session(*session)
    return ClaimRequest(
        label=input_rules.check_name("label", label),
        owner=input_rules.check_name("owner", owner),
        host=os.uname().nodename,
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
    """The id that equals `text`, or the only one that begins with it."""
    if text in found or len(found) == 1:
        return text if text in found else found[0]
    if not found:
        raise UnknownJob(job=text, store=where)
    more = " …" if len(found) > CANDIDATES_SHOWN else ""
    raise AmbiguousId(prefix=text, candidates=found[:CANDIDATES_SHOWN], more=more)
