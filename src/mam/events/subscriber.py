"""The state of a subscriber of one job. Pure: messages, events of the registry and times are parameters.

The registry is authoritative. A subscriber accepts a message only if it is signed with the token and is the next in
order. Any other message makes it read the registry, so that no forged message can report what did not happen.
"""

from __future__ import annotations

from mam.events.event import COMPLETED, ERROR, PERMISSION_REQUIRED
from mam.events.wire import TRUNCATED, InvalidMessage, parse_wire
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Payload = dict[str, Any]

TERMINAL = (COMPLETED, ERROR)


class Verdict(Frozen):
    """The result of one message."""

    accepted: Payload | None = None
    dropped: str | None = None
    """Why it was dropped, for a person; None for a repetition."""
    read_upto: int | None = None
    """The sequence number up to which the registry must be read, because the message alone is not trusted."""


class Subscription:
    """What one subscriber knows about one job."""

    def __init__(
        self, job_id: str, *, now: float, token: str | None = None, seen: int = 0,
        timeout: float = 0, idle_timeout: float = 0, idle_begins: bool = True,
    ) -> None:  # fmt: skip
        self.job_id = job_id
        self.seen = seen
        """Events up to this number have been reported, by this subscriber or an earlier one."""
        self.ended: str | None = None
        """The final status of the job, once it is known."""
        self._token = token
        self._ends = now + timeout if timeout else None
        self._idle_timeout = idle_timeout
        self._quiet_since: float | None = now if idle_begins else None
        """When the idle time began; None while it does not count."""

    @property
    def is_signed(self) -> bool:
        """Whether a message can be accepted without reading the registry."""
        return self._token is not None

    # -- from the wire -----------------------------------------------------------------------------------------------

    def receive(self, raw: bytes, now: float) -> Verdict:
        try:
            payload = parse_wire(raw, self._token)
        except InvalidMessage as why:
            return Verdict(dropped=str(why))
        if payload["job_id"] != self.job_id:
            return Verdict(dropped="it belongs to another job")
        is_trusted = self._token is not None and not payload["data"].get(TRUNCATED)
        if payload["seq"] <= self.seen:
            return self._receive_again(payload, is_trusted)
        if is_trusted and payload["seq"] == self.seen + 1:
            self._accept(payload, now)
            return Verdict(accepted=payload)
        return Verdict(read_upto=payload["seq"])

    def _receive_again(self, payload: Payload, is_trusted: bool) -> Verdict:
        """A repetition is not reported again, but it can still show that the job has ended."""
        if payload["event"] not in TERMINAL or self.ended is not None:
            return Verdict()
        if not is_trusted:
            return Verdict(read_upto=payload["seq"])
        self.ended = _end_status(payload)
        return Verdict()

    # -- from the registry -------------------------------------------------------------------------------------------

    def read(self, events: Iterable[Payload], now: float) -> list[Payload]:
        """Takes events and markers of the registry, in order, and returns those that were not reported yet."""
        fresh = []
        for event in events:
            if "marker" in event:
                self.seen = max(self.seen, event["upto"])  # numbers that no event carries
            elif event["seq"] > self.seen:
                self._accept(event, now)
                fresh.append(event)
            elif event["event"] in TERMINAL:
                self.ended = _end_status(event)
        return fresh

    def _accept(self, payload: Payload, now: float) -> None:
        self.seen = payload["seq"]
        # An agent that waits for a permission is not idle.
        self._quiet_since = None if payload["event"] == PERMISSION_REQUIRED else now
        if payload["event"] in TERMINAL:
            self.ended = _end_status(payload)

    # -- time --------------------------------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        """When a timeout expires, if no event comes."""
        idle = self._quiet_since + self._idle_timeout if self._idle_timeout and self._quiet_since is not None else None
        known = [moment for moment in (self._ends, idle) if moment is not None]
        return min(known) if known else None

    def expired(self, now: float) -> str | None:
        """What the timeout means, as the predicate of a sentence; None if none has expired."""
        if self.ended is not None:
            return None
        if self._ends is not None and now >= self._ends:
            return "has not ended"
        deadline = self.deadline()
        return "said nothing" if deadline is not None and now >= deadline else None


def _end_status(payload: Payload) -> str:
    is_cancelled = payload["event"] == ERROR and payload["data"].get("status") == "cancelled"
    return "cancelled" if is_cancelled else str(payload["event"])
