"""Runs all verbs on a few prepared jobs and records the results, so that two runs can be compared.

A run that was disturbed must tell the story of one that was not, or no story at all: never half of it, never twice.
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

Story = list[tuple[tuple[object, ...], ...]]
"""Act by act, and line by line, what the journal says: whose line, which event, from where to where, which number."""


class Cast:
    """The jobs of one run, under a label of their own: one is held by a session and has spoken, one asks, one is
    pending, one's lease is over, one has ended."""

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

    def story(self, store: Store) -> Story:
        """What happened to these jobs since they were prepared, as somebody else reads it."""
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


Verb = Callable[[Registry, Cast], Any]

WRITERS: dict[str, Verb] = {
    "register": lambda registry, cast: registry.register(prompt="new", agent="codex", label=cast.label),
    "register with a key": lambda registry, cast: registry.register(
        prompt="new", agent="codex", label=cast.label, key=f"key of {cast.label}"
    ),
    "pick": lambda registry, cast: registry.pick(cast.label, owner="me"),
    "pick in a new session": lambda registry, cast: registry.pick(
        cast.label, owner="me", session=(cast.agent, "second")
    ),
    "announce": lambda registry, cast: registry.announce(cast.agent, "second"),
    "sweep": lambda registry, cast: registry.sweep(),
    "heartbeat": lambda registry, cast: registry.heartbeat(cast.running, attempt=1),
    "publish": lambda registry, cast: registry.publish(cast.running, event="progress", attempt=1),
    "next_seq": lambda registry, cast: registry.next_seq(cast.running),
    "complete": lambda registry, cast: registry.complete(cast.running, attempt=1, result="r"),
    "complete a pending job": lambda registry, cast: registry.complete(cast.pending),
    "fail": lambda registry, cast: registry.fail(cast.running, reason="r", attempt=1),
    "fail retryably": lambda registry, cast: registry.fail(cast.running, reason="r", attempt=1, retryable=True),
    "ask": lambda registry, cast: cast.ask(registry),
    "answer": lambda registry, cast: cast.answer(registry),
    "complete a job that asks": lambda registry, cast: registry.complete(cast.asking, attempt=1, result="r"),
    "release": lambda registry, cast: registry.release(cast.running, attempt=1),
    "cancel": lambda registry, cast: registry.cancel(cast.pending),
    "cancel a running job": lambda registry, cast: registry.cancel(cast.running),
    "retry": lambda registry, cast: registry.retry(cast.ended),
    "set a status": lambda registry, cast: registry.set_status(cast.pending, RUNNING),
    "register after another": lambda registry, cast: registry.register(
        prompt="new", agent="codex", label=cast.label, after=[cast.running], exclusive=f"e of {cast.label}"
    ),
}

READERS: dict[str, Verb] = {
    "get": lambda registry, cast: registry.get(cast.running).status,
    "get by the beginning of an id": lambda registry, cast: registry.get(cast.running[:20]).status,
    "list": lambda registry, cast: sorted(job.status for job in registry.select(Query(label=cast.label))),
    "explain": lambda registry, cast: registry.explain(cast.running)[0].status,
    "events": lambda registry, cast: [event["event"] for event in registry.store.events(cast.running)],
    "journal": lambda registry, cast: len(list(registry.store.entries(None))) > 0,
}
