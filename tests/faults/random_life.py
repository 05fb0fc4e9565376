"""Runs random acts on a registry: every verb, drawn from a seed, in an order that is often legal.

`python -m tests.faults.random_life KIND PATH SEED ACTS` runs in a process of its own, which a test watches or kills.
After each act it prints how many entries the journal has.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mam import questions
from mam.errors import MamError, StoreUnavailable
from mam.jobs.pause import Pause
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.jobs.status import CANCELLED, COMPLETED, RUNNING
from mam.registry import Registry
from tests.faults.invariants import FoldedJournal, check_store

if TYPE_CHECKING:
    from tests.faults.store_kinds import StoreKind

LABELS = ("one", "two")
WARM = 40
"""The number of acts after which most verbs have run."""


class RandomUser:
    """Runs random acts on one registry."""

    def __init__(self, registry: Registry, seed: int | str, folded: FoldedJournal | None = None) -> None:
        """`folded` is the journal so far; without it, it is read."""
        self._registry = registry
        self._chance = random.Random(seed)
        if folded is None:
            folded = FoldedJournal()
            folded.follow(registry.store)
        self._offset, self._entries = folded.offset, folded.number
        self._known = sorted(folded.records)
        self._held: dict[str, int] = {
            job_id: record["attempt"] for job_id, record in folded.records.items() if record["status"] == "running"
        }

    def act(self) -> None:
        """Runs one verb. A refusal is an answer like any other; an unreachable store is an error."""
        verbs: list[Callable[[], Any]] = [
            self._register, self._register, self._pick, self._pick, self._speak, self._speak, self._end, self._end,
            self._heartbeat, self._number, self._release, self._cancel, self._sweep, self._aside, self._announce,
            self._archive, self._set, self._ask, self._answer, self._answer,
        ]  # fmt: skip
        try:
            self._chance.choice(verbs)()
        except StoreUnavailable:
            raise
        except MamError:
            pass

    def entries(self) -> int:
        """The number of entries in the journal: everything that was acknowledged."""
        for entry in self._registry.store.entries(self._offset):
            self._entries, self._offset = entry.number, entry.offset
        return self._entries

    def _register(self) -> None:
        chance = self._chance
        choices: dict[str, Any] = {"priority": chance.randint(-1, 1), "label": chance.choice(LABELS)}
        if chance.random() < 0.3:
            choices["key"] = f"key {chance.randint(1, 5)}"
        if chance.random() < 0.2:
            choices["exclusive"] = "alone"
        if self._known and chance.random() < 0.2:
            choices["after"] = [chance.choice(self._known)]
        prompt = "x" * chance.choice((1, 100, 5000))
        self._known.append(self._registry.register(prompt=prompt, agent="codex", **choices).job.job_id)

    def _pick(self) -> None:
        lease = self._chance.choice((0.0, 3600.0, 3600.0))
        session = self._chance.choice((None, None, ("gpu", self._generation())))
        job = self._registry.pick(self._chance.choice(LABELS), owner="me", lease_seconds=lease, session=session)
        if job is not None:
            self._held[job.job_id] = job.attempt

    def _holding(self) -> tuple[str, int]:
        return self._chance.choice(sorted(self._held.items())) if self._held else ("nobody", 1)

    def _any(self) -> str:
        return self._chance.choice(self._known) if self._known else "nobody"

    def _speak(self) -> None:
        job_id, attempt = self._holding()
        self._registry.publish(job_id, event="progress", detail="on it", attempt=attempt)

    def _ask(self) -> None:
        """Some questions have a deadline that has passed at once."""
        job_id, attempt = self._holding()
        draft = Draft(kind="question", text="Which?", deadline_seconds=self._chance.choice((None, 0.0, 3600.0)))
        questions.ask(self._registry, job_id, draft, attempt=attempt)

    def _answer(self) -> None:
        for asked in questions.open_now(self._registry):
            known = asked.question
            given = Answer(number=known.number, attempt=known.attempt, digest=known.digest, answer="this", by="me@here")
            questions.answer(self._registry, asked.job.job_id, given)
            return

    def _end(self) -> None:
        job_id, attempt = self._holding()
        self._held.pop(job_id, None)
        enders: list[Callable[[], Any]] = [
            lambda: self._registry.complete(job_id, attempt=attempt, result="done"),
            lambda: self._registry.fail(job_id, reason="broken", attempt=attempt),
            lambda: self._registry.fail(job_id, reason="later", attempt=attempt, retryable=True),
        ]
        self._chance.choice(enders)()

    def _heartbeat(self) -> None:
        job_id, attempt = self._holding()
        self._registry.heartbeat(job_id, attempt=attempt)

    def _number(self) -> None:
        self._registry.next_seq(self._any())

    def _release(self) -> None:
        job_id, attempt = self._holding()
        self._registry.release(job_id, attempt=attempt)

    def _cancel(self) -> None:
        job_id = self._any()
        if self._chance.random() < 0.5:
            self._registry.cancel(job_id)
        else:
            self._registry.retry(job_id)

    def _sweep(self) -> None:
        self._registry.sweep()

    def _generation(self) -> str:
        return f"life-{self._entries // 40}"

    def _announce(self) -> None:
        self._registry.announce("gpu", self._generation())

    def _archive(self) -> None:
        self._registry.archive([self._any() for _ in range(3)])

    def _set(self) -> None:
        self._registry.set_status(self._any(), self._chance.choice((RUNNING, COMPLETED, CANCELLED)))

    def _aside(self) -> None:
        store = self._registry.store
        if self._chance.random() < 0.5:
            store.pause(Pause(agent="somebody", label=None, until=None, reason="r", made_at="now"))
        else:
            store.keep_secrets(self._any(), {"auth_token": "t"})


def warm(store_kind: StoreKind, folder: Path) -> None:
    """Runs some acts, so that every child shares what the first act imports and prepares."""
    place = folder / "warm"
    store_kind.make(place)
    for seed in range(2):
        store = store_kind.open(place)
        life = RandomUser(Registry(store), f"warm {seed}")
        for _ in range(WARM):
            life.act()
            life.entries()
        check_store(store_kind, place, store)
        store.close()
    shutil.rmtree(place)
    gc.collect()
    gc.freeze()


def main() -> None:
    from tests.faults.store_kinds import STORE_KINDS

    kind, place, seed, acts = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    store_kind = STORE_KINDS[kind]
    store_kind.make(place)
    life, other = RandomUser(Registry(store_kind.open(place)), seed), store_kind.open(place)
    for number in range(acts):
        life.act()
        other.save_position("another process", str(number))  # which notes that the record files are written
        os.write(1, b"%d\n" % life.entries())


if __name__ == "__main__":
    main()
