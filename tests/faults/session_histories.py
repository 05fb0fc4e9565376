"""Many processes compete to be the one session of a name, in the directory and in the store from which it claims."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mam.agents.acts import publish, refresh, remove
from mam.agents.record_parser import record_from
from mam.errors import MamError, StoreUnavailable
from mam.registry import Registry
from mam.stores.port import Query
from mam.util.clock import SystemClock
from tests.faults.callers import CallerPool, CallerTask, note
from tests.faults.histories import LABEL, LEASE, DisturbedCallers, OpenStore, Plan
from tests.faults.linearizability import Call, linearizable

if TYPE_CHECKING:
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord
    from mam.stores.port import Store
    from mam.util.clock import Clock

AGENT = "gpu"
GENERATIONS = tuple(f"life-{number}" for number in range(5))
LONG = 10 * 365 * 86400.0
"""A lease that no jump of the clock ends, because these histories test who owns a name, not for how long."""
OK, NO = "ok", "no"


class SessionAsker:
    """The calls of one process. It uses any generation, like a script that was started twice."""

    def __init__(self, directory: Directory, store: Store, task: CallerTask, notes: int) -> None:
        self._directory = directory
        self._registry = Registry(store)
        self._chance = task.chance
        self._notes = notes

    def close(self) -> None:
        self._registry.store.close()

    def ask(self) -> None:
        generation = self._chance.choice(GENERATIONS)
        change = self._directory.change
        asks: dict[tuple[str, str], Callable[[], Any]] = {
            ("directory", "publish"): lambda: change(AGENT, publish(record_of(generation), LONG)),
            ("directory", "refresh"): lambda: change(AGENT, refresh(generation, LONG)),
            ("directory", "remove"): lambda: change(AGENT, remove(generation)),
            ("directory", "look"): self._look,
            ("store", "announce"): lambda: self._registry.announce(AGENT, generation),
            ("store", "claim"): lambda: self._claim(generation),
        }
        (of, verb), do = self._chance.choice(sorted(asks.items(), key=str))
        note(self._notes, ["asked", f"{verb} {generation}", of, None, time.monotonic()])
        try:
            answer = do() if verb == "look" else (do(), OK)[1]
        except StoreUnavailable:
            return  # it is unknown whether the call took effect
        except MamError:
            answer = NO
        note(self._notes, ["told", answer, time.monotonic()])

    def _look(self) -> str | None:
        record = self._directory.read(AGENT).record
        return "nobody" if record is None else record.generation_id

    def _claim(self, generation: str) -> None:
        self._registry.register(prompt="p", agent="a", label=LABEL)
        self._registry.pick(LABEL, owner=generation, lease_seconds=LEASE, session=(AGENT, generation))


def record_of(generation: str, agent_id: str = AGENT) -> AgentRecord:
    return record_from({
        "schema_version": 3, "agent_name": f"MAM-{agent_id}", "agent_id": agent_id, "generation_id": generation,
        "lifecycle": {"state": "active", "relaunchable": False, "state_updated_at": "2026-01-01T00:00:00Z"},
        "identity": {"backend": "tmux", "tool": "shell"}, "runtime": {"manifest_path": "/m", "agent_def_dir": None},
        "terminal": {"current_session_name": "gpu", "last_session_name": "gpu"},
        "liveness": {"published_at": "2026-01-01T00:00:00Z", "lease_expires_at": "2026-01-02T00:00:00Z"},
        "mam": {"host": "here", "socket": ""},
    })  # fmt: skip


def directory_outcomes(owner: str, call: Call) -> Iterator[str]:
    """A name belongs to one generation until that generation removes it. `owner` is "nobody" or a generation."""
    verb, generation = call.verb.split()
    if verb == "look":
        after, answer = owner, owner
    elif owner == generation or (verb == "publish" and owner == "nobody"):
        after, answer = "nobody" if verb == "remove" else generation, OK
    else:
        after, answer = owner, NO
    if not call.known or call.answer == answer:
        yield after


def store_outcomes(known: tuple[str, frozenset[str]], call: Call) -> Iterator[tuple[str, frozenset[str]]]:
    """The first announcement of a generation replaces the one before it, for good. A claim announces too, in a
    transaction of its own, and looks again before the answer: one that counted, and was replaced a moment later, may be
    refused at once."""
    current, superseded = known
    generation = call.verb.split()[1]
    if call.answer == NO and generation not in superseded:
        call = replace(call, answer=OK)
    after, answer = (generation, superseded | ({current} - {generation, ""})), OK
    if generation in superseded:
        after, answer = known, NO
    if not call.known or call.answer == answer:
        yield after


OpenDirectory = Callable[[Path, "Clock"], "Directory"]


class SessionHistories:
    """Histories of generations of one name, in a directory and in the store from which it claims."""

    def __init__(self, open_directory: OpenDirectory, open_store: OpenStore) -> None:
        def make_caller(task: CallerTask, clock: Clock, notes: int) -> SessionAsker:
            place = Path(task.folder)
            return SessionAsker(open_directory(place, clock), open_store(place, clock), task, notes)

        self._open_store = open_store
        self._pool = CallerPool(make_caller)

    def close(self) -> None:
        self._pool.close()

    def judged(self, folder: Path, plan: Plan) -> int:
        """Runs a history and checks it. Returns the number of its calls."""
        callers = DisturbedCallers(self._pool, folder, plan)
        callers.live()
        calls = callers.calls()
        for of, begin, follow in (
            ("directory", "nobody", directory_outcomes),
            ("store", ("", frozenset[str]()), store_outcomes),
        ):
            told = "\n".join(str(call) for call in sorted(calls.get(of, []), key=lambda call: call.asked))
            explained = linearizable(calls.get(of, []), begin, follow)
            assert explained, f"seed {plan.seed}, no order explains the {of}:\n{told}"
        store = self._open_store(folder, SystemClock())
        try:
            _check_holders(store)
        finally:
            store.close()
        return sum(map(len, calls.values()))


def _check_holders(store: Store) -> None:
    """After the current generation has announced itself again, no older one holds a job."""
    known = store.generations().get(AGENT)
    if known is None:
        return
    store.announce(AGENT, known.current)
    holders = [job.claimant for job in store.select(Query()) if job.claimant is not None]
    assert all(holder["generation_id"] == known.current for holder in holders), holders
