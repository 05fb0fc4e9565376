"""Asks for a driver: each request in a thread of its own, since the agent goes on and a person may take hours."""

from __future__ import annotations

import os
from threading import Event, Thread

from mam.errors import MamError, StoreUnavailable
from mam.jobs.question import DENY
from mam.work.asking.finding import find_asker
from mam.work.asking.port import Decision
from mam.work.drivers.lines import answered_line, asked_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.question import Draft
    from mam.work.asking.port import Asker
    from mam.work.drivers.lines import Printer


GONE_SECONDS = 60.0
"""How long a driver waits for its end when its worker is gone; longer than a keeper takes."""


class Asking:
    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._over = Event()

    def in_background(self, do: Callable[[], None]) -> None:
        Thread(target=do, name="mam-ask", daemon=True).start()

    def decide(self, call: str, draft: Draft, is_over: Callable[[], bool] = lambda: False) -> Decision:
        """What the person, a rule or the deadline decided. If mam cannot ask, no one has decided."""
        self._printer.line(asked_line(call, draft))
        try:
            decision = self._asker().decide(draft, lambda: self._over.is_set() or is_over())
        except StoreUnavailable as error:
            # The worker is gone, so this process tree is about to end. Until then, the model must not read a refusal:
            # it would go on without what the next attempt asks for again.
            self._over.wait(GONE_SECONDS)
            decision = Decision(outcome=DENY, reason=f"mam could not ask: {error}")
        except MamError as error:
            decision = Decision(outcome=DENY, reason=f"mam could not ask: {error}")
        self._printer.line(answered_line(call, draft, decision))
        return decision

    def close(self) -> None:
        """The turn is over; open questions are withdrawn."""
        self._over.set()

    def _asker(self) -> Asker:
        asker = find_asker(os.environ)
        if asker is None:
            from mam.errors import Refused

            raise Refused(why="this process belongs to no job")
        return asker
