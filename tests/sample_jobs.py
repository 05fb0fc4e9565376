"""Runs all verbs on a few prepared jobs and records the results, so that two runs can be compared.

The history of a disturbed run must equal that of an undisturbed one or be empty. It is never partial or doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mam import questions
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.jobs.status import RUNNING
from mam.registry import Registry
from mam.stores.port import Query

if TYPE_CHECKING:
    from mam.questions import Asked
    from mam.stores.port import Store

JobHistory = list[tuple[tuple[object, ...], ...]]
"""Act by act, and line by line, what the journal says: whose line, which event, from where to where, which number."""


class SampleJobs:
    """The jobs of one run, under a label of their own: a session holds one, which has published an event, one asks, one
    is pending, one's lease is over, one has ended."""

    def __init__(self, registry: Registry, label: str) -> None:
        self.label = label
        self.agent = label.replace(" ", "-")
        self.ended = self._job(registry)
        registry.cancel(self.ended)
        self.running = self._job(registry)
        registry.pick(label, owner="me", session=(self.agent, "first"))
        registry.publish(self.running, event="started", attempt=1)
        self.asking = self._job(registry)
        registry.pick(label, owner="me")
        self.question = self._ask(registry, self.asking).question
        self.lost = self._job(registry)
        registry.pick(label, owner="me")
        self.pending = self._job(registry)
        registry.heartbeat(self.lost, attempt=1, lease_seconds=0)
        roles = ("running", "asking", "lost", "pending", "ended")
        self._roles = {getattr(self, role): role for role in roles}
        self._offset = registry.store.end_offset()

    @property
    def job_ids(self) -> list[str]:
        return list(self._roles)

    def history(self, store: Store) -> JobHistory:
        """What happened to these jobs since they were prepared, as another process reads it."""
        mine = {job.job_id for job in store.select(Query(label=self.label))}
        assert mine >= self._roles.keys(), "a job was lost"
        return [
            tuple(
                (self._roles.get(entry.job_id, "new"), line["event"], line.get("from"), line.get("to"), line.get("seq"))
                for line in entry.lines
            )
            for entry in store.entries(self._offset)
            if entry.job_id in mine
        ]

    def _ask(self, registry: Registry, job_id: str) -> Asked:
        draft = Draft(kind="permission", text="May it push?", tool="Bash", input={"command": "git push"})
        return questions.ask(registry, job_id, draft, attempt=1)

    def ask(self, registry: Registry) -> str:
        return self._ask(registry, self.running).id

    def answer(self, registry: Registry) -> str | None:
        given = Answer(number=1, attempt=1, digest=self.question.digest, answer="allow", by="me@here")
        return questions.answer(registry, self.asking, given).question.answer

    def _job(self, registry: Registry) -> str:
        return registry.register(prompt="work", agent="codex", label=self.label).job.job_id


Verb = Callable[[Registry, SampleJobs], Any]

WRITERS: dict[str, Verb] = {
    "register": lambda registry, sample: registry.register(prompt="new", agent="codex", label=sample.label),
    "register with a key": lambda registry, sample: registry.register(
        prompt="new", agent="codex", label=sample.label, key=f"key of {sample.label}"
    ),
    "pick": lambda registry, sample: registry.pick(sample.label, owner="me"),
    "pick in a new session": lambda registry, sample: registry.pick(
        sample.label, owner="me", session=(sample.agent, "second")
    ),
    "announce": lambda registry, sample: registry.announce(sample.agent, "second"),
    "sweep": lambda registry, sample: registry.sweep(),
    "heartbeat": lambda registry, sample: registry.heartbeat(sample.running, attempt=1),
    "publish": lambda registry, sample: registry.publish(sample.running, event="progress", attempt=1),
    "next_seq": lambda registry, sample: registry.next_seq(sample.running),
    "complete": lambda registry, sample: registry.complete(sample.running, attempt=1, result="r"),
    "complete a pending job": lambda registry, sample: registry.complete(sample.pending),
    "fail": lambda registry, sample: registry.fail(sample.running, reason="r", attempt=1),
    "fail retryably": lambda registry, sample: registry.fail(sample.running, reason="r", attempt=1, retryable=True),
    "ask": lambda registry, sample: sample.ask(registry),
    "answer": lambda registry, sample: sample.answer(registry),
    "complete a job that asks": lambda registry, sample: registry.complete(sample.asking, attempt=1, result="r"),
    "release": lambda registry, sample: registry.release(sample.running, attempt=1),
    "cancel": lambda registry, sample: registry.cancel(sample.pending),
    "cancel a running job": lambda registry, sample: registry.cancel(sample.running),
    "retry": lambda registry, sample: registry.retry(sample.ended),
    "set a status": lambda registry, sample: registry.set_status(sample.pending, RUNNING),
    "register after another": lambda registry, sample: registry.register(
        prompt="new", agent="codex", label=sample.label, after=[sample.running], exclusive=f"e of {sample.label}"
    ),
}

READERS: dict[str, Verb] = {
    "get": lambda registry, sample: registry.get(sample.running).status,
    "get by the beginning of an id": lambda registry, sample: registry.get(sample.running[:20]).status,
    "list": lambda registry, sample: sorted(job.status for job in registry.select(Query(label=sample.label))),
    "explain": lambda registry, sample: registry.explain(sample.running)[0].status,
    "events": lambda registry, sample: [event["event"] for event in registry.store.events(sample.running)],
    "journal": lambda registry, sample: len(list(registry.store.entries(None))) > 0,
}
