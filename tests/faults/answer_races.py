"""Two processes that answer each question at the same moment, on any store."""

from __future__ import annotations

import mmap
import os
from functools import partial
from typing import TYPE_CHECKING

from mam import questions
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.stores.port import ClaimRequest
from mam.testing import tasks
from mam.testing.races import RacePool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mam.questions import Asked
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.races import Report

    Round = tuple[str, Answer]

_STEP_BYTES = 4
_REPORTED = 50
"""A racer that works for long says so after so many rounds."""


def race_answers(registry: Registry, open_store: Callable[[], Store], folder: Path, count: int) -> None:
    """Asks `count` questions and requires one winner each, which the record and the journal have."""
    steps = folder / "steps"
    steps.write_bytes(bytes(2 * _STEP_BYTES))
    held = [_asked(registry, number) for number in range(count)]
    rounds = {word: [(one.job.job_id, _reply(one, word)) for one in held] for word in ("allow", "deny")}
    with RacePool(open_store, processes=True) as pool:
        racers = [
            partial(_answer_in_step, rounds=rounds[word], slot=slot, path=str(steps))
            for slot, word in enumerate(rounds)
        ]
        first, second = pool.race(racers)
    assert [one + other for one, other in zip(first, second, strict=True)] == [1] * count
    for asked, is_first in zip(held, first, strict=True):
        closed = questions.find(registry, asked.id).question
        winner = "allow" if is_first else "deny"
        assert (closed.answer, closed.answered_by, closed.decided) == (winner, winner, "person")
    answered = [line for entry in registry.store.entries(None) for line in entry.lines if line["event"] == "answered"]
    assert len(answered) == count
    assert 0 < sum(first) < count, "both have won some, so they did meet"
    print(f"{count} races: {sum(first)} and {sum(second)} won")


def _asked(registry: Registry, number: int) -> Asked:
    draft = Draft(kind="permission", text="May it?", tool="Bash", input={"command": f"run {number}"})
    job = registry.register(prompt="x", agent="shell").job
    held = registry.claim(ClaimRequest(label="shell", owner="me", lease_seconds=3600.0, job_id=job.job_id))
    assert held is not None
    return questions.ask(registry, job.job_id, draft, attempt=1, claim_id=held.claim_id)


def _reply(asked: Asked, word: str) -> Answer:
    question = asked.question
    return Answer(number=question.number, attempt=1, digest=question.digest, answer=word, by=word)


def _answer_in_step(store: Store, report: Report, *, rounds: list[Round], slot: int, path: str) -> list[bool]:
    """Answers one question after the other, each when the other racer is about to answer it too."""
    won = []
    at, other = (slice(one * _STEP_BYTES, (one + 1) * _STEP_BYTES) for one in (slot, 1 - slot))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as steps:
        for number, (job_id, given) in enumerate(rounds, 1):
            steps[at] = number.to_bytes(_STEP_BYTES, "little")
            while int.from_bytes(steps[other], "little") < number:
                os.sched_yield()
            won.append(tasks.answer_question(store, report, job_id=job_id, given=given))
            if number % _REPORTED == 0:
                report(number)
    return won
