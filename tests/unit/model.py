"""A simple model of a job from the contract (sections 1 and 3). It shares no code with the product."""

from __future__ import annotations

from dataclasses import dataclass, field

TABLE = {
    "pending": {"running", "waiting", "error", "cancelled"},
    "waiting": {"pending", "error", "cancelled"},
    "running": {"completed", "error", "waiting", "pending", "cancelled"},
    "completed": set(),
    "error": set(),
    "cancelled": set(),
}
ENDS = {"completed", "error", "cancelled"}
PICK_SECONDS = 3600.0
MAX_LOSSES = 3
MAX_RETRIES = 3


class Lost(Exception):
    """The writer no longer holds the job: exit code 4."""


class No(Exception):
    """The move is illegal or the act is refused: exit code 1."""


@dataclass
class Clocks:
    wall: float = 0.0
    boot: float = 0.0
    boots: int = 1


@dataclass
class Lease:
    seconds: float
    wall: float
    boot: float
    boots: int

    def left(self, now: Clocks) -> float:
        return self.boot - now.boot if self.boots == now.boots else self.wall - now.wall


@dataclass
class ModelJob:
    number: int
    label: str
    priority: int
    status: str = "pending"
    attempt: int = 0
    losses: int = 0
    retries: int = 0
    seq: int = 0
    endings: int = 0
    ended_by: int | None = None
    due: float | None = None
    lease: Lease | None = field(default=None)

    @property
    def seen(self) -> tuple[object, ...]:
        """What a user can see of it."""
        return (self.status, self.attempt, self.losses, self.retries, self.seq, self.endings)

    # -- what happens to it ------------------------------------------------------------------------------------

    def move(self, to: str) -> None:
        if to not in TABLE[self.status]:
            raise No(f"{self.status} -> {to}")
        self.status = to
        if to != "running":
            self.lease = None
        if to != "waiting":
            self.due = None
        if to in ENDS:
            self.seq += 1
            self.endings += 1

    def claim(self, now: Clocks, seconds: float = PICK_SECONDS) -> None:
        self.move("running")
        self.attempt += 1
        self.renew(now, seconds)

    def renew(self, now: Clocks, seconds: float) -> None:
        self.lease = Lease(seconds, now.wall + seconds, now.boot + seconds, now.boots)

    def fence(self, attempt: int | None) -> None:
        if attempt is not None and not (self.status == "running" and self.attempt == attempt):
            raise Lost

    def end(self, to: str, attempt: int | None, now: Clocks) -> None:
        if self._again(to, attempt):
            return
        self.fence(attempt)
        if to == "completed" and self.status == "pending":
            self.claim(now)
        self.move(to)
        self.ended_by = attempt

    def fail_retryable(self, attempt: int | None, now: Clocks) -> None:
        if self._again("error", attempt):
            return
        self.fence(attempt)
        if self.status == "pending":
            self.claim(now)
        if self.retries < MAX_RETRIES:
            self.move("waiting")
            self.retries += 1
        else:
            self.move("error")
            self.ended_by = attempt

    def release(self, attempt: int | None) -> None:
        self.fence(attempt)
        if self.status == "waiting":
            raise No("only what is held is released")
        if self.status != "pending":
            self.move("pending")

    def heartbeat(self, attempt: int | None, now: Clocks, seconds: float | None) -> None:
        self.fence(attempt)
        if self.status != "running" or self.lease is None:
            raise No("nothing to renew")
        self.renew(now, self.lease.seconds if seconds is None else seconds)

    def publish(self, event: str, attempt: int | None, now: Clocks) -> None:
        if event in ENDS:
            self.end(event, attempt, now)
            return
        self.fence(attempt)
        if self.status in ENDS:
            raise No("a finished job takes no event")
        if event == "started" and self.status != "running":
            self.claim(now)
        self.seq += 1
        if self.lease is not None and self.lease.seconds > self.lease.left(now):
            self.renew(now, self.lease.seconds)

    def set_by_hand(self, to: str, attempt: int | None, now: Clocks) -> None:
        if self.status == to and attempt is None:
            return
        if to == "waiting":
            raise No("never set")
        if to in ENDS:
            self.end(to, attempt, now)
        elif to == "running" and attempt is None:
            self.claim(now)
        elif to == "running":
            self.heartbeat(attempt, now, None)
        elif self.status == "waiting" and attempt is None:
            self.move("pending")
        else:
            self.release(attempt)

    def left(self, now: Clocks) -> float | None:
        if self.status == "waiting" and self.due is not None:
            return self.due - now.wall
        return None if self.lease is None else self.lease.left(now)

    def settle(self, now: Clocks) -> None:
        left = self.left(now)
        if left is None or left > 0:
            return
        if self.status == "waiting":
            self.move("pending")
            return
        self.losses += 1
        self.move("error" if self.losses >= MAX_LOSSES else "pending")

    def _again(self, to: str, attempt: int | None) -> bool:
        return self.status == to and (attempt is None or self.ended_by == attempt)
