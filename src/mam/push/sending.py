"""Finds what has to be sent to which browser, sends it, and notes what became of it in the history of the job.

It compares what needs a person with what the histories say was sent. So nothing is lost when a server is killed. Two
servers of one store, or a lost audit log, at worst send a message twice, and a browser shows it once.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from itertools import islice

from mam.access.grant import ANSWER
from mam.access.reading import AuthorizedReading
from mam.access.subscriptions import subscriptions, unsubscribe, viewer_of_subscription
from mam.errors import BadInput, MamError
from mam.jobs import notices
from mam.jobs.notices import GONE, QUESTION
from mam.jobs.status import ERROR
from mam.push.delivery import Delivery, deliver
from mam.push.keys import private_key
from mam.push.message import TEST, make_message
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.access.subscriptions import Subscription
    from mam.jobs.notices import Notice, Tried
    from mam.jobs.record import Job
    from mam.registry import Registry

FAILURES_LOOKED_AT, FAILURES_SENT = 100, 20
MINUTE, MOST_A_MINUTE = 60.0, 20
"""A browser gets at most so many in a minute. The others follow, if they still need someone."""


class Sender:
    """Not for two threads at once."""

    def __init__(self, registry: Registry, *, contact: str, allow_private: bool) -> None:
        self._registry = registry
        self._contact = contact
        self._allow_private = allow_private
        self._tried: dict[tuple[str, str, str], Tried] = {}
        """What the histories say, by job, subject and browser; of what still needs someone."""
        self._sent: dict[str, deque[float]] = {}

    def send_due(self) -> float | None:
        """Sends what is due. Returns the seconds until the next attempt; None if nothing is left to send."""
        store = self._registry.store
        browsers = subscriptions(store)
        if not browsers:
            return None
        check_packages()
        now_ms, waits = store.clock.now().wall_ms, list[float]()
        wanted = [(job, one) for job in self._candidates() for one in notices.notices_of(job, now_ms)]
        keys = {(job.job_id, one.subject, to.name) for job, one in wanted for to in browsers}
        self._tried = {key: known for key, known in self._tried.items() if key in keys}
        for to in browsers:
            for job, one in wanted:
                wait = self._send_one(job, one, to, now_ms)
                if wait is not None:
                    waits.append(wait)
        return min(waits, default=None)

    def send_test(self, to: Subscription) -> Delivery:
        """Sends a message that names no job."""
        return self._deliver(to, TEST, "")

    def _candidates(self) -> Iterator[Job]:
        """The jobs that ask, oldest first, and the latest failures that no one has looked at."""
        from mam import questions

        asking = {one.job.job_id: one.job for one in questions.open_now(self._registry)}
        yield from asking.values()
        failed = islice(self._registry.select(Query(statuses=frozenset({ERROR}))), FAILURES_LOOKED_AT)
        yield from islice((job for job in failed if self._registry.needs_look(job)), FAILURES_SENT)

    def _send_one(self, job: Job, notice: Notice, to: Subscription, now_ms: int) -> float | None:
        is_earlier = notice.at_ms // 1000 < to.made_ms // 1000
        if is_earlier or not self._may_see(job, notice, to):
            return None
        key = (job.job_id, notice.subject, to.name)
        known = self._tried.get(key) or notices.tried(self._registry.history(job.job_id), notice, to.name)
        self._tried[key] = known
        wait = known.due_in(now_ms)
        if wait is None or (wait := wait or self._full_for(to)):
            return wait
        done = self._deliver(to, notice.kind, job.job_id)
        self._note(job, notice, to, done)
        self._tried[key] = known = known.after(done.outcome, now_ms)
        if done.outcome == GONE:
            unsubscribe(self._registry.store, to.name)
        return known.due_in(now_ms)

    def _deliver(self, to: Subscription, kind: str, job_id: str) -> Delivery:
        store = self._registry.store
        try:
            message = make_message(
                to, private_key(store, to.key), kind=kind, job_id=job_id, contact=self._contact,
                now=store.clock.now().wall_ms // 1000,
            )  # fmt: skip
        except (MamError, ValueError) as error:
            return Delivery(
                outcome=notices.REFUSED, why=str(error) if isinstance(error, MamError) else "its key is wrong"
            )
        self._sent.setdefault(to.name, deque(maxlen=MOST_A_MINUTE)).append(time.monotonic())
        return deliver(message, allow_private=self._allow_private)

    def _note(self, job: Job, notice: Notice, to: Subscription, done: Delivery) -> None:
        act = partial(notices.note, subject=notice.subject, to=to.name, outcome=done.outcome, why=done.why)
        self._registry.act(job.job_id, "notify", act)

    def _full_for(self, to: Subscription) -> float:
        """Seconds until this browser may get another one."""
        sent = self._sent.get(to.name)
        is_full = sent is not None and len(sent) == MOST_A_MINUTE
        return max(0.0, sent[0] + MINUTE - time.monotonic()) if sent is not None and is_full else 0.0

    def _may_see(self, job: Job, notice: Notice, to: Subscription) -> bool:
        viewer = viewer_of_subscription(self._registry.store, to)
        if viewer is None:
            return False
        reading = AuthorizedReading(self._registry, viewer)
        return (notice.kind == QUESTION and viewer.may(ANSWER)) or reading.may_see(job)


def check_packages() -> None:
    """BadInput with the command that installs what is missing."""
    try:
        import http_ece
        import py_vapid  # noqa: F401
    except ImportError:
        from mam.util.extras import command_for

        raise BadInput(why=f"notifications need the extra `push`: {command_for('push')}") from None
    del http_ece
