"""What a subscriber makes of the messages of one job. Pure: bytes, events of the registry and times come in.

The registry is the truth. A message that carries the token's signature and comes next is believed; any other one only
says that it is worth looking into the registry, so that nothing that is sent can make it tell what did not happen.
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
    """What became of one message."""

    accepted: Payload | None = None
    dropped: str | None = None
    """Why, for a person to read; None also for a mere repetition, which is nobody's news."""
    read_upto: int | None = None
    """The number up to which the registry shall be read, since the message alone is not enough."""


class Subscription:
    """One job, from one subscriber's side."""

    def __init__(
        self, job_id: str, *, now: float, token: str | None = None, seen: int = 0,
        timeout: float = 0, idle_timeout: float = 0, idle_begins: bool = True,
    ) -> None:  # fmt: skip
        self.job_id = job_id
        self.seen = seen
        """Every number up to this has been told, now or by an earlier subscriber."""
        self.ended: str | None = None
        """The status in which the job ended, once that is known."""
        self._token = token
        self._ends = now + timeout if timeout else None
        self._idle_timeout = idle_timeout
        self._quiet_since: float | None = now if idle_begins else None
        """From when silence counts; None while it does not."""

    @property
    def is_signed(self) -> bool:
        """Whether a message can be believed by itself."""
        return self._token is not None

    # -- from the wire -----------------------------------------------------------------------------------------------

    def receive(self, raw: bytes, now: float) -> Verdict:
        try:
            payload = parse_wire(raw, self._token)
        except InvalidMessage as why:
            return Verdict(dropped=str(why))
        if payload["job_id"] != self.job_id:
            return Verdict(dropped="it speaks of another job")
        believed = self._token is not None and not payload["data"].get(TRUNCATED)
        if payload["seq"] <= self.seen:
            return self._receive_again(payload, believed)
        if believed and payload["seq"] == self.seen + 1:
            self._accept(payload, now)
            return Verdict(accepted=payload)
        return Verdict(read_upto=payload["seq"])

    def _receive_again(self, payload: Payload, believed: bool) -> Verdict:
        """A repetition tells nothing, but the end that it tells is still the end."""
        if payload["event"] not in TERMINAL or self.ended is not None:
            return Verdict()
        if not believed:
            return Verdict(read_upto=payload["seq"])
        self.ended = _end_status(payload)
        return Verdict()

    # -- from the registry -------------------------------------------------------------------------------------------

    def read(self, events: Iterable[Payload], now: float) -> list[Payload]:
        """Events and markers of the registry, in order; those that were not told yet come back."""
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
        # Whoever waits for a person's permission is not idle, however long that takes.
        self._quiet_since = None if payload["event"] == PERMISSION_REQUIRED else now
        if payload["event"] in TERMINAL:
            self.ended = _end_status(payload)

    # -- time --------------------------------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        """When it will have waited long enough, if nothing comes."""
        idle = self._quiet_since + self._idle_timeout if self._idle_timeout and self._quiet_since is not None else None
        known = [moment for moment in (self._ends, idle) if moment is not None]
        return min(known) if known else None

    def expired(self, now: float) -> str | None:
        """What ran out, in words."""
        if self.ended is not None:
            return None
        if self._ends is not None and now >= self._ends:
            return "has not ended"
        deadline = self.deadline()
        return "said nothing" if deadline is not None and now >= deadline else None


def _end_status(payload: Payload) -> str:
    called_off = payload["event"] == ERROR and payload["data"].get("status") == "cancelled"
    return "cancelled" if called_off else str(payload["event"])
