"""One thread follows the journal and wakes everybody who waits: streams of events, claims that wait, waits for an end.

The hub keeps the latest changes. For a reader that is further behind it reads the journal in blocks. Readers that are
behind together share them, so a server that falls behind with all of its readers does not do the work once for each.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from itertools import islice
from threading import Event, Lock, Thread

from mam.errors import MamError
from mam.jobs.status import ENDED
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Json
    from mam.registry import Registry
    from mam.stores.port import Entry

KEPT = 2000
"""Changes in memory."""
LABELS_KEPT = 10_000
SLEEP_SECONDS = 10.0
"""The longest sleep of the thread: so long lasts the end of a server that is closed inside a process."""
RETRY_SECONDS = 1.0
PAGE = 500
BLOCK, BLOCKS_KEPT = 100, 32
"""Entries of the journal that are read at once for a reader that is behind, and how many such blocks are kept."""
_ENDED = frozenset(str(status) for status in ENDED)


class JobChange(Frozen):
    """One entry of the journal, as streams send it."""

    number: int
    job_id: str
    label: str
    agent: str
    status: str | None
    """The new status, if it changed."""
    events: tuple[str, ...]
    """The names of its events."""
    history: tuple[str, ...]
    """The names of its history lines."""
    data: bytes
    """The JSON of it."""


class JournalHub:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._names: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._lock = Lock()
        self._changes: deque[JobChange] = deque(maxlen=KEPT)
        self._blocks: OrderedDict[tuple[str, int], list[JobChange]] = OrderedDict()
        self._stopped = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self.epoch = registry.store.journal_id
        self.last = self._since = 0
        """The number of the last entry, and the number after which `_changes` is complete."""

    def start(self) -> None:
        """From within the event loop."""
        self._loop = asyncio.get_running_loop()
        offset = self._registry.store.end_offset()
        self.last = self._since = number_of(offset)
        Thread(target=self._follow, args=(offset,), name="mam-hub", daemon=True).start()

    def stop(self) -> None:
        """Wakes all who wait; the thread ends when it next wakes."""
        self._stopped.set()
        self._publish([])

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    async def wait(self, seconds: float) -> bool:
        """Sleeps until something happens. Returns False when the time is over."""
        news = self._news
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            return False
        return True

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "the hub is started"
        return self._loop

    async def wait_for_job(self, job_id: str, number: int, seconds: float) -> int:
        """Sleeps until this job may have changed after the entry of this number. Returns the number to go on from."""
        ends = self.loop.time() + seconds
        while not self.is_stopped and (left := ends - self.loop.time()) > 0:
            changes = self.after(number)
            if changes is None or any(change.job_id == job_id for change in changes):
                break
            number = self.last
            await self.wait(left)
        return self.last

    async def wait_for_label(self, label: str, number: int, seconds: float) -> None:
        """Sleeps until there may be a job of this label to claim, after the entry of this number: a job of it changed,
        an end may have freed an exclusive key, or a pause was lifted."""
        ends = self.loop.time() + seconds
        while not self.is_stopped and (left := ends - self.loop.time()) > 0:
            changes = self.after(number)
            if changes is None or any(one.label == label or one.status in _ENDED for one in changes):
                return
            number = self.last
            if await self.wait(left) and self.last == number:
                return

    def after(self, number: int) -> list[JobChange] | None:
        """The changes after this number that are in memory; None when there are more in the journal."""
        if number < self._since:
            return None
        found = list[JobChange]()
        for change in reversed(self._changes):
            if change.number <= number:
                break
            found.append(change)
        return found[::-1]

    def end(self) -> int:
        """The number of the last entry now. It blocks."""
        return number_of(self._registry.store.end_offset())

    def read(self, number: int) -> list[JobChange]:
        """Some changes after this number, from the journal; none at its end. It blocks."""
        block = self._block(number - number % BLOCK)
        return [change for change in block if change.number > number] or self._read(number)

    def _block(self, start: int) -> list[JobChange]:
        """The entries start + 1 to start + BLOCK, as far as there are any."""
        key = (self.epoch, start)
        with self._lock:
            known = self._blocks.get(key)
        if known is not None:
            return known
        found = [change for change in self._read(start) if change.number <= start + BLOCK]
        if found and found[-1].number == start + BLOCK:  # no entry appears before one that was read
            with self._lock:
                self._blocks[key] = found
                while len(self._blocks) > BLOCKS_KEPT:
                    self._blocks.popitem(last=False)
        return found

    def _read(self, number: int) -> list[JobChange]:
        entries = self._registry.store.entries(str(number) if number else None)
        return [self._change_of(entry) for entry in islice(entries, BLOCK)]

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _follow(self, offset: str) -> None:
        while not self._stopped.is_set():
            try:
                offset = self._step(offset)
            except (MamError, OSError):
                # The store is away, or was replaced: requests report it. Those who wait look again.
                self._stopped.wait(RETRY_SECONDS)
                self._tell([])

    def _step(self, offset: str) -> str:
        store = self._registry.store
        if store.journal_id != self.epoch:
            self.epoch, offset = store.journal_id, "0"
            self._on_loop(self._restart)
        found = list[JobChange]()
        for entry in store.entries(offset if number_of(offset) else None):
            found.append(self._change_of(entry))
            offset = entry.offset
            if len(found) == PAGE:
                self._tell(found)
                found = []
        if found:
            self._tell(found)
        self._registry.sweep_if_due()
        before = time.monotonic()
        self._registry.wait_for_change(offset, SLEEP_SECONDS)
        if time.monotonic() - before < SLEEP_SECONDS:
            self._tell([])  # a pause may have been lifted, which is no entry
        return offset

    def _tell(self, changes: list[JobChange]) -> None:
        self._on_loop(self._publish, changes)

    def _on_loop(self, function: object, *given: object) -> None:
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *given)  # type: ignore[arg-type]
        except RuntimeError:
            self._stopped.set()  # the loop is closed

    # -- in the event loop ---------------------------------------------------------------------------------------------

    def _restart(self) -> None:
        self._changes.clear()
        self.last = self._since = 0

    def _publish(self, changes: Iterable[JobChange]) -> None:
        for change in changes:
            if len(self._changes) == KEPT:
                self._since = self._changes[0].number
            self._changes.append(change)
            self.last = change.number
        news, self._news = self._news, asyncio.Event()
        news.set()

    # -- one change ----------------------------------------------------------------------------------------------------

    def _change_of(self, entry: Entry) -> JobChange:
        fields = entry.fields or {}
        label, agent = self._names_of(entry.job_id, fields)
        payloads = [line["payload"] for line in entry.lines if line["event"] == "published" and "payload" in line]
        status = fields.get("status")
        history = tuple(str(line["event"]) for line in entry.lines)
        data = {
            "position": position_text(self.epoch, entry.number), "job_id": entry.job_id, "label": label,
            "agent": agent, "status": status, "events": payloads,
            "history": history,
        }  # fmt: skip
        return JobChange(
            number=entry.number, job_id=entry.job_id, label=label, agent=agent, status=status,
            events=tuple(str(payload.get("event")) for payload in payloads), history=history, data=to_bytes(data),
        )  # fmt: skip

    def _names_of(self, job_id: str, fields: Json) -> tuple[str, str]:
        """The label and the agent. Most entries do not repeat them."""
        with self._lock:
            names = self._names.get(job_id)
        if names is not None and "agent_session" not in fields:
            return names
        label, agent = fields.get("agent_session"), fields.get("agent")
        names = (label, agent) if isinstance(label, str) and isinstance(agent, str) else self._look_up(job_id)
        with self._lock:
            self._names[job_id] = names
            while len(self._names) > LABELS_KEPT:
                self._names.popitem(last=False)
        return names

    def _look_up(self, job_id: str) -> tuple[str, str]:
        try:
            job = self._registry.get_exact(job_id)
        except MamError:
            return "", ""
        return job.agent_session, job.agent


def number_of(offset: str) -> int:
    return int(offset.partition("@")[0] or 0)


def position_text(epoch: str, number: int) -> str:
    return f"{epoch}-{number}"


def parse_position(text: str) -> tuple[str, int] | None:
    """The epoch and the number; None for text that is no position."""
    epoch, dash, number = text.rpartition("-")
    if not dash or not number.isascii() or not number.isdigit() or len(number) > 18 or len(epoch) > 128:
        return None
    return epoch, int(number)
