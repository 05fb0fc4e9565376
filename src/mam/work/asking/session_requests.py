"""The worker's side of the hooks of a live session: what they ask becomes questions, and the answers become files."""

from __future__ import annotations

import time

from mam.errors import AnswerTooLate, BadInput, Refused
from mam.machine.processes import is_alive
from mam.work.asking.port import LOOK_SECONDS, WITHDRAWN, Decision, decision_of
from mam.work.asking.session_files import read_request, remove_request, request_names, write_decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Question
    from mam.work.asking.in_worker import WorkerAsker
    from mam.work.asking.session_files import Request


class SessionRequests:
    """The requests of one attempt's session. What an earlier worker asked for is asked again, under a new number."""

    def __init__(self, root: str, job_id: str, asker: WorkerAsker) -> None:
        self._root = root
        self._job_id = job_id
        self._asker = asker
        self._open: dict[str, Request] = {}
        self._numbers: dict[str, int] = {}
        self._done: set[str] = set()
        self._seen = -1
        self._read_at = 0.0

    def look(self) -> None:
        """Asks what is new, passes on what is decided, and withdraws what no hook waits for. Raises MamError if the
        store cannot be reached; the next look goes on."""
        names = request_names(self._root)
        has_news = self._has_news()
        for name in names:
            if name not in self._numbers and name not in self._done:
                self._begin(name)
        for name, number in list(self._numbers.items()):
            if name not in names or not is_alive(self._open[name].process):
                self._asker.withdraw(number)
                self._end(name, None)
                remove_request(self._root, name)
            elif has_news:
                self._pass_on(name, number)

    def _has_news(self) -> bool:
        """Also true now and then, since a deadline passes without a change."""
        now, changes = time.monotonic(), self._asker.changes
        if changes == self._seen and now < self._read_at + LOOK_SECONDS:
            return False
        self._seen, self._read_at = changes, now
        return True

    def _begin(self, name: str) -> None:
        request = read_request(self._root, name)
        if request is None or not is_alive(request.process):
            remove_request(self._root, name)
            return None
        if request.job_id != self._job_id:
            return self._end(name, Decision(outcome=WITHDRAWN))
        try:
            question = self._asker.open(request.draft)
        except (Refused, BadInput):  # too many open questions: its dialog decides
            return self._end(name, Decision(outcome=WITHDRAWN))
        self._open[name], self._numbers[name] = request, question.number
        return self._pass_on(name, question.number, question)

    def _pass_on(self, name: str, number: int, question: Question | None = None) -> None:
        try:
            question = question or self._asker.find(number)
        except AnswerTooLate:
            return self._end(name, Decision(outcome=WITHDRAWN))
        if not question.is_open:
            if question.number:
                self._asker.learned(question)
            self._end(name, decision_of(question))
        return None

    def _end(self, name: str, decision: Decision | None) -> None:
        self._open.pop(name, None)
        self._numbers.pop(name, None)
        self._done.add(name)
        if decision is not None:
            write_decision(self._root, name, decision)
