"""What racers of a pool do. Module-level functions, so that they can travel to other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mam import questions
from mam.errors import AlreadyRegistered, AnswerTooLate, ClaimLost, GenerationLost, MamError
from mam.jobs.draft import draft_job
from mam.registry import Registry
from mam.stores.port import ClaimRequest, Query

if TYPE_CHECKING:
    from mam.jobs.question_acts import Answer
    from mam.stores.port import Store
    from mam.testing.races import Report

LABEL = "tmux:claude"
SESSION = "gpu"
"""The agent whose sessions claim."""
LAST = "last-of-all"
"""The id of the job that tells readers that the writers are done."""


def claim_one(store: Store, _report: Report) -> tuple[str, int] | None:
    job = store.claim(ClaimRequest(label=LABEL, owner="racer"))
    return None if job is None else (job.job_id, job.attempt)


def claim_all(store: Store, report: Report) -> list[tuple[str, int]]:
    taken = []
    while (claimed := claim_one(store, report)) is not None:
        taken.append(claimed)
    return taken


def finish_all(store: Store, _report: Report) -> list[str]:
    """Claims and completes until every job has ended: a key in use only means that another one has to finish first."""
    registry, done = Registry(store), []
    while any(not job.status.ended for job in store.select(Query())):
        job = registry.pick(LABEL, owner="racer", wait=0.05)
        if job is not None:
            registry.complete(job.job_id, attempt=job.attempt)
            done.append(job.job_id)
    return done


def live_as(store: Store, report: Report, *, generation: str, forever: bool = False) -> list[str]:
    """Claims and completes as one life of a session, until there is nothing left or another life has begun."""
    registry, done = Registry(store), []
    try:
        while (job := registry.pick(LABEL, owner=generation, session=(SESSION, generation))) is not None:
            if forever:
                report(job.job_id)
                registry.register(prompt="one more", agent="codex", label=LABEL)
            try:
                registry.complete(job.job_id, attempt=job.attempt)
                done.append(job.job_id)
            except ClaimLost:
                pass  # and the next claim is refused
    except GenerationLost:
        pass
    return done


def be_reborn(store: Store, report: Report, *, name: str) -> None:
    """One life after the other for ever: each says so, and claims."""
    registry, life = Registry(store), 0
    while True:
        life += 1
        registry.pick(LABEL, owner=name, session=(SESSION, f"{name}-{life}"))
        report(f"{name}-{life}")


def next_seqs(store: Store, _report: Report, *, job_id: str, times: int) -> list[int]:
    registry = Registry(store)
    return [registry.next_seq(job_id) for _ in range(times)]


def register_with_key(store: Store, _report: Report, *, key: str) -> tuple[str, bool]:
    registration = Registry(store).register(prompt="once", agent="codex", key=key)
    return registration.job.job_id, registration.created


def register_as(store: Store, _report: Report, *, job_id: str) -> bool:
    try:
        return Registry(store).register(prompt="mine", agent="codex", job_id=job_id).created
    except AlreadyRegistered:
        return False


def register_many(store: Store, _report: Report, *, name: str, count: int) -> list[int]:
    """The numbers that its jobs got."""
    drafts = [draft_job(job_id=f"{name}-{rank}", prompt=name, agent="codex", label=LABEL) for rank in range(count)]
    return [job.number for job in store.register_all(drafts)]


def retry_of(store: Store, _report: Report, *, job_id: str) -> str:
    return Registry(store).retry(job_id).job.job_id


def continuation_of(store: Store, _report: Report, *, job_id: str) -> str:
    return Registry(store).continue_job(job_id, prompt="more").job.job_id


def sweep_once(store: Store, _report: Report) -> list[str]:
    return [job.job_id for job in store.sweep()]


def end_as(store: Store, _report: Report, *, job_id: str, verb: str, attempt: int | None) -> bool:
    """Whether this racer was the one that ended the job, or at least was not refused."""
    registry = Registry(store)
    try:
        if verb == "complete":
            registry.complete(job_id, attempt=attempt)
        elif verb == "fail":
            registry.fail(job_id, reason="gave up", attempt=attempt)
        else:
            registry.cancel(job_id)
    except MamError:
        return False
    return True


def wait_for_entries(store: Store, report: Report, *, rounds: int) -> int:
    """Says that it is about to sleep, then sleeps until there is news; returns how often it was woken by some.

    Being woken for nothing is allowed.
    """
    for turn in range(rounds):
        offset = store.end_offset()
        report(turn)
        while next(iter(store.entries(offset)), None) is None:
            if not store.wait(offset, 30.0):
                return turn
    return rounds


def hand_around(store: Store, _report: Report, *, times: int) -> None:
    """Claims, speaks and releases, so that records change under the readers' eyes."""
    registry = Registry(store)
    for _ in range(times):
        job = store.claim(ClaimRequest(label=LABEL, owner="writer"))
        if job is not None:
            registry.publish(job.job_id, event="progress", detail="one step", attempt=job.attempt)
            registry.release(job.job_id, attempt=job.attempt)
        registry.register(prompt="more", agent="codex", label="somebody else")


def read_along(store: Store, _report: Report, *, job_ids: list[str]) -> int:
    """Reads everything again and again until the writers are done; returns how often."""
    seen: dict[str, tuple[int, int]] = dict.fromkeys(job_ids, (0, 0))
    rounds = 0
    while True:
        rounds += 1
        found = [job for job in store.select(Query()) if job.job_id in seen]
        assert sorted(job.job_id for job in found) == sorted(seen), "a job was missing or was there twice"
        for job in found + [store.get(job_id) for job_id in job_ids]:
            running = job.status == "running"
            assert (job.lease is not None, job.owner is not None) == (running, running), f"torn: {job}"
            assert (job.attempt, job.last_seq) >= seen[job.job_id], f"went back: {job}"
            seen[job.job_id] = (job.attempt, job.last_seq)
            told = event_numbers(store.events(job.job_id))
            assert told == list(range(1, len(told) + 1)), f"numbers are missing: {told}"
            assert len(told) >= job.last_seq, f"an event is missing: {told}"
        assert set(job_ids) <= set(store.ids_with_prefix("shared-", 1000))
        assert store.ahead_of(found[0]) >= 0
        if LAST in store.ids_with_prefix(LAST, 1):
            return rounds


def work_until_killed(store: Store, report: Report, *, name: str) -> None:
    """Registers, claims, speaks and completes for ever, and reports each act once it has been acknowledged."""
    registry = Registry(store)
    turn = 0
    while True:
        turn += 1
        job_id = f"{name}-{turn}"
        registry.register(prompt=f"work {turn}", agent="codex", label=name, job_id=job_id, key=job_id)
        report(("registered", job_id, 0, 0))
        job = store.claim(ClaimRequest(label=name, owner=name))
        assert job is not None
        report(("claimed", job.job_id, job.attempt, 0))
        seq = registry.next_seq(job.job_id)
        report(("reserved", job.job_id, job.attempt, seq))
        seq = registry.publish(job.job_id, event="progress", detail="on it", attempt=job.attempt).last_seq
        report(("progress", job.job_id, job.attempt, seq))
        if turn % 3:
            seq = registry.complete(job.job_id, attempt=job.attempt, result=f"done {turn}").last_seq
            report(("completed", job.job_id, job.attempt, seq))


def event_numbers(events: list[dict[str, Any]]) -> list[int]:
    """The sequence numbers that a job's events and markers account for, in the order of the events."""
    return [number for event in events for number in range(event["seq"], event.get("upto", event["seq"]) + 1)]


def consume_until_killed(store: Store, report: Report, *, name: str) -> None:
    """Reports each entry that it handles, then saves how far it is, for ever."""
    from mam.stores.consumer import Consumer

    consumer = Consumer(store, name)
    consumer.load()
    while True:
        for entry in consumer.entries():
            report(entry.number)
            consumer.done(entry)
            consumer.save()
        store.wait(consumer.offset or store.end_offset(), 1.0)


def answer_question(store: Store, _report: Report, *, job_id: str, given: Answer) -> bool:
    """Whether this answer won."""
    try:
        questions.answer(Registry(store), job_id, given)
    except AnswerTooLate:
        return False
    return True


def wait_for_answer(store: Store, report: Report, *, question: str) -> tuple[str, str | None]:
    registry = Registry(store)
    asked = questions.find(registry, question)
    report("waiting")
    closed = questions.wait_for_answer(registry, asked, 60)
    return closed.state, closed.answer
