"""The asker of an agent's own process: it asks through the worker's door. Hooks and drivers of protocols use it."""

from __future__ import annotations

import time

from mam.door_client import PARK_SECONDS, DoorClient, encode_json
from mam.errors import TimedOut
from mam.jobs.question import Question
from mam.work.asking.port import LOOK_SECONDS, Decision, decision_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mam.jobs.question import Draft


def door_asker(environ: Mapping[str, str]) -> DoorAsker | None:
    """For a process of a job that a worker runs; None elsewhere. StoreUnavailable if the worker is gone."""
    address = environ.get("MAM_SOCKET")
    return DoorAsker(DoorClient(address)) if address and environ.get("MAM_JOB_ID") else None


class DoorAsker:
    """If the process ends while it waits for a permission, the worker withdraws the question."""

    def __init__(self, client: DoorClient, **fence: object) -> None:
        """`fence` may name job, attempt and claim_id, which have to be those of the door."""
        self._client = client
        self._fence = fence

    def decide(self, draft: Draft, is_over: Callable[[], bool] | None = None) -> Decision:
        question: Question | None = self.open(draft)
        assert question is not None
        if not question.is_open:
            return decision_of(question)
        number = question.number
        while (question := self.wait(number, PARK_SECONDS if is_over is None else LOOK_SECONDS)) is None:
            if is_over is not None and is_over():
                return decision_of(self.withdraw(number))
        return decision_of(question)

    def open(self, draft: Draft) -> Question:
        fields = draft.as_dict()
        return _question(self._client.call("ask", encode_json(fields).encode(), **self._fence))

    def wait(self, number: int, longest: float) -> Question | None:
        """The question once it is closed; None if it is still open after `longest` seconds."""
        answer = self._client.call("await", question=number, longest=min(longest, PARK_SECONDS))
        return None if answer["question"] is None else _question(answer)

    def wait_until_closed(self, number: int, timeout: float | None = None) -> Question:
        """TimedOut after `timeout` seconds; the question stays open then."""
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            left = PARK_SECONDS if ends is None else max(0.0, ends - time.monotonic())
            question = self.wait(number, left)
            if question is not None:
                return question
            if not left:
                raise TimedOut(what=f"question {number} is not answered", seconds=f"{timeout:g}")

    def withdraw(self, number: int) -> Question:
        return _question(self._client.call("withdraw", question=number))


def _question(answer: Mapping[str, object]) -> Question:
    fields = answer["question"]
    assert isinstance(fields, dict)
    return Question.from_fields({**Question.all_fields, **fields})
