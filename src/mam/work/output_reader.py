"""Reads an agent's output while it runs, in a thread of its own, since the attempt's thread waits for the end.

It publishes progress at intervals, and the session's name as soon as it is known, so that the next attempt can resume
the session. It ends an agent that waits for an answer that will not come.
"""

from __future__ import annotations

import os
import select
import time
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from mam.work.process.runner import Run
    from mam.work.reports.report import Reader, Report

PROGRESS_SECONDS = 10.0
"""At most one event per interval: a turn may have thousands of steps."""
PATIENCE_SECONDS = 120.0
"""How long an agent may print nothing after a vendor's error before mam ends it."""
_CHUNK = 1 << 16
_LOOK_SECONDS = 1.0
_DRAIN_SECONDS = 30.0


class OutputReader:
    """`publish` gets a progress text and the report so far, and returns whether the store has them; `give_up` ends the
    run. Neither may raise."""

    def __init__(
        self, reader: Reader, run: Run, publish: Callable[[str, Report], bool], give_up: Callable[[], None]
    ) -> None:
        self._reader = reader
        self._report = reader.report
        self._run = run
        self._publish = publish
        self._give_up: Callable[[], None] | None = give_up
        self._published_at = -PROGRESS_SECONDS
        self._known_session: str | None = None
        self._answered = False
        self._unpublished: str | None = None
        self._read_at = time.monotonic()
        self._over = False
        self._thread = Thread(target=self._read, name="mam-hear", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Called when the run has ended. Reads what is left in the pipe, for a limited time."""
        self._thread.join(_DRAIN_SECONDS)
        self._over = True
        self._thread.join()

    def _read(self) -> None:
        feeds: dict[int, Callable[[bytes], object]] = {}
        if self._run.tee is not None:
            feeds[self._run.tee] = self._feed
        if self._run.tee_errors is not None:
            feeds[self._run.tee_errors] = self._reader.feed_errors
        poll = select.poll()
        for descriptor in feeds:
            poll.register(descriptor, select.POLLIN)
        while feeds and not self._over:
            for descriptor, _ in poll.poll(_LOOK_SECONDS * 1000):
                data = os.read(descriptor, _CHUNK)
                if not data:
                    poll.unregister(descriptor)
                    del feeds[descriptor]
                else:
                    feeds[descriptor](data)
            self._publish_if_due()

    def _feed(self, data: bytes) -> None:
        self._read_at = time.monotonic()
        for words in self._reader.feed(data):
            self._unpublished = words

    def _publish_if_due(self) -> None:
        now = time.monotonic()
        is_new = self._report.session != self._known_session or self._report.has_answered != self._answered
        if is_new or (self._unpublished is not None and now >= self._published_at + PROGRESS_SECONDS):
            session, answered = self._report.session, self._report.has_answered
            words, self._unpublished, self._published_at = self._unpublished or "", None, now
            if self._publish(words, self._report):  # else once more: without its session, no attempt can resume
                self._known_session, self._answered = session, answered
        in_vain = self._report.problem is not None and now >= self._read_at + PATIENCE_SECONDS
        if (self._report.is_stuck or in_vain) and not self._report.is_over and self._give_up is not None:
            give_up, self._give_up = self._give_up, None
            give_up()
