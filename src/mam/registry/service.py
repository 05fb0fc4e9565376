"""The verbs that make jobs, hand them out and wait: register, retry, continue, claim, pause, sweep, archive."""

from __future__ import annotations

import os
import time
from functools import lru_cache

from mam.errors import NoSuchWorker, Refused
from mam.jobs import input_rules
from mam.jobs.status import WAITING
from mam.registry.changing import ChangingRegistry
from mam.stores.port import ClaimRequest, Query
from mam.util.hosts import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.jobs.workers import WorkerEntry
    from mam.stores.interest import Interest
    from mam.stores.port import Registration

TOKEN_BYTES = 32
LONGEST_SLEEP_SECONDS = 30.0
"""The longest sleep of a waiting process. New entries wake it earlier; this limits the cost of a lost wake-up."""


class Registry(ChangingRegistry):
    """The whole service."""

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
                f" `mam retry {new.job_id[:8]}` continues from there."
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

    def ask_worker(self, name: str, what: str) -> WorkerEntry:
        """Asks a live worker to drain or to stop; it obeys when it next renews its entry."""
        live = {worker.name: worker for worker in self.live_workers()}
        if name not in live or not self.store.ask_worker(name, what):
            raise NoSuchWorker(worker=repr(name[:200]))
        return live[name]

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
