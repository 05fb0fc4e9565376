"""Checks histories: could one job that serves one caller at a time have given these answers?

This is the search of Wing and Gong with the memory of Lowe, for one job at a time, since jobs share no state. The
model is written from the contract and shares no code with the product. A call without an answer, because its caller
was killed, may have taken effect at any later time, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

ENDS = ("completed", "error", "cancelled")
MAX_LOSSES = 3


@dataclass(frozen=True)
class Call:
    """One call on one job, and its answer."""

    verb: str
    asked: float
    answered: float
    """inf if there is no answer."""
    attempt: int | None = None
    lease: float = 0.0
    answer: Any = None
    """(status, attempt, last_seq) of the job after it; a word for a refusal; None without an answer."""

    @property
    def known(self) -> bool:
        return self.answered != inf

    def __str__(self) -> str:
        fence = "" if self.attempt is None else f" as {self.attempt}"
        return f"{self.asked:.6f} .. {self.answered:.6f} {self.verb}{fence}: {self.answer}"


@dataclass(frozen=True)
class State:
    status: str = "absent"
    attempt: int = 0
    seq: int = 0
    losses: int = 0
    expires: float = inf
    """A sweep may find the claim expired from this moment on."""
    ended_by: int | None = None

    @property
    def shown(self) -> tuple[str, int, int]:
        return (self.status, self.attempt, self.seq)


LOST, REFUSED, EXISTS, UNKNOWN = "lost", "refused", "exists", "unknown"


Outcomes = Callable[[Any, Call], Iterator[Any]]


def linearizable(calls: list[Call], begin: Hashable = State(), follow: Outcomes | None = None) -> bool:  # noqa: B008
    """Whether there is an order of the calls in which each takes effect between its start and its answer.

    The calls are those on one job, unless the arguments give another first state and another effect of a call.
    """
    possible: Outcomes = outcomes if follow is None else follow
    calls = sorted(calls, key=lambda call: call.asked)
    everything = sum(1 << place for place, call in enumerate(calls) if call.known)
    seen: set[tuple[int, Hashable]] = set()
    ways: list[tuple[int, Hashable]] = [(0, begin)]
    while ways:
        done, state = ways.pop()
        if done & everything == everything:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        for place in _next(calls, done):
            call = calls[place]
            # A call without an answer, and one without an effect, need not have happened.
            ways.extend((done | 1 << place, after) for after in possible(state, call) if call.known or after != state)
    return False


def _next(calls: list[Call], done: int) -> Iterator[int]:
    """The calls that may come next: those made before any other remaining call was answered."""
    left = [place for place in range(len(calls)) if not done >> place & 1]
    first_answer = min((calls[place].answered for place in left), default=inf)
    for place in left:
        if calls[place].asked <= first_answer:
            yield place


def outcomes(state: State, call: Call) -> Iterator[State]:
    """The possible states after the call if its answer is right, also if the lease expired before it."""
    for before in (state, *_expired(state, call)):
        after, answer = _done(before, call)
        if not call.known or call.answer == answer:
            yield after


def _expired(state: State, call: Call) -> Iterator[State]:
    """The claim may be over, because another call has swept the job since."""
    if state.status == "running" and call.answered >= state.expires:
        losses = state.losses + 1
        if losses >= MAX_LOSSES:
            yield replace(state, status="error", losses=losses, seq=state.seq + 1, expires=inf, ended_by=None)
        else:
            yield replace(state, status="pending", losses=losses, expires=inf)


def _done(state: State, call: Call) -> tuple[State, Any]:
    if call.verb == "register":
        if state.status != "absent":
            return state, EXISTS
        after = State(status="pending")
        return after, after.shown
    if call.verb == "claim":
        return _claimed(state, call)
    if state.status == "absent":
        return state, UNKNOWN
    if call.verb == "get":
        return state, state.shown
    if call.verb in ("complete", "fail", "cancel"):
        return _ended(state, call)
    if call.verb == "next_seq":
        after = replace(state, seq=state.seq + 1)
        return after, after.shown
    return _held(state, call)


def _claimed(state: State, call: Call) -> tuple[State, Any]:
    if state.status != "pending":
        return state, REFUSED
    after = replace(state, status="running", attempt=state.attempt + 1, expires=call.asked + call.lease)
    return after, after.shown


def _ended(state: State, call: Call) -> tuple[State, Any]:
    to = {"complete": "completed", "fail": "error", "cancel": "cancelled"}[call.verb]
    if state.status == to and (call.attempt is None or state.ended_by == call.attempt):
        return state, state.shown
    if call.attempt is not None and (state.status, state.attempt) != ("running", call.attempt):
        return state, LOST
    if state.status in ENDS:
        return state, REFUSED
    after = replace(state, status=to, seq=state.seq + 1, expires=inf, ended_by=call.attempt)
    return after, after.shown


def _held(state: State, call: Call) -> tuple[State, Any]:
    """A write of a holder, which must hold the job at that moment."""
    if (state.status, state.attempt) != ("running", call.attempt):
        return state, LOST
    if call.verb == "release":
        after = replace(state, status="pending", expires=inf)
    elif call.verb == "publish":
        after = replace(state, seq=state.seq + 1, expires=max(state.expires, call.asked + call.lease))
    else:
        assert call.verb == "heartbeat", call.verb
        after = replace(state, expires=call.asked + call.lease)
    return after, after.shown
