"""The live session that a worker serves: whether it can take a job now, and its state.

The worker claims nothing for a session that cannot take a job, so that the job stays pending and `explain` states why.
A job that the session still works on after its worker has gone is claimed first, and is not typed again.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam.agents.activity import parse_hook_line, process_state, session_root_of, state_from_screen
from mam.agents.control import check_target
from mam.agents.errors import SessionServed
from mam.agents.generations import note_store
from mam.agents.hook_log import HookReader, append
from mam.agents.lookup import by_any, require_live
from mam.agents.names import bare_name
from mam.agents.send import check_can_type
from mam.agents.turns import TurnTracker
from mam.errors import MamError, UnknownJob
from mam.jobs.activity import DONE, GONE, NEEDS_PERMISSION, QUIET, WORKING, decide_state
from mam.jobs.status import PENDING, RUNNING, WAITING
from mam.stores.port import Query
from mam.util.encoding import to_bytes
from mam.work.claim import STORE_UNREACHABLE
from mam.work.live.assignment import ENDED, INTERRUPTED, Assignment, read_assignment, write_assignment
from mam.work.live.transcripts import end_in_transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.agents.control import Target
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord
    from mam.agents.turns import Turn
    from mam.jobs.activity import State
    from mam.jobs.record import Job, Json
    from mam.registry import Registry
    from mam.stores.port import ClaimRequest

SESSION = "session"
"""The value of `waiting_for` when the session could not take the job."""
STILL_SECONDS = 60.0
"""A session whose hooks report work and whose screen has not changed for this long was interrupted by a person, which
no hook reports. A working agent shows a clock."""
SETTLED_SECONDS = 3.0
"""The same, after mam interrupted it."""
RESTART_SECONDS = 5.0
"""How long it may take until an ended session is known to be restarting."""


class LiveSession:
    def __init__(
        self, directory: Directory, name: str, between: str | None = None, shared: tuple[str, ...] = ()
    ) -> None:
        self._shared = shared
        self.between = between
        self.unready_reason: str | None = None
        """Why nothing was claimed at the last try, although there may be a job."""
        self.lost: MamError | None = None
        """Set when there has been no live session of this name for a while. It may be restarted at any time."""
        self._lost_since = 0.0
        self._directory = directory
        self._name = name
        self._noted = ""
        self._lock = -1
        self._reader: HookReader | None = None
        self._screen = ""
        self._screen_since = 0.0
        self.turns = TurnTracker()
        self.record = require_live(by_any(directory, name), name)
        self._take(self.record)

    @property
    def name(self) -> str:
        return bare_name(self.record.agent_name)

    @property
    def label(self) -> str:
        return f"tmux:{self.name}"

    @property
    def labels(self) -> tuple[str, ...]:
        """Its own label, which no other session serves, and those that it shares with others."""
        return (self.label, *(label for label in self._shared if label != self.label))

    @property
    def tool(self) -> str:
        return self.record.identity.tool

    @property
    def root(self) -> str:
        return session_root_of(self.record)

    def open(self) -> None:
        """One worker at a time: two would type into each other's turns. The lock ends with its holder."""
        path = os.path.join(self.root, "worker.lock")
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise SessionServed(name=self.name) from None

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -- claiming --------------------------------------------------------------------------------------------------

    def claim(self, registry: Registry, requests: list[ClaimRequest]) -> Job | None:
        """Claims for this generation, if the session can take a job; otherwise sets `unready_reason`. The requests name
        the labels in their order."""
        self.unready_reason = None
        try:
            self._renew()
            own = {"agent_id": self.record.agent_id, "generation_id": self.record.generation_id}
            requests = [request.replace(**own) for request in requests]
            self._note(registry)
            assignment = self.assignment()
            open_job = self._open_job(registry, assignment) if assignment.is_open else None
            if open_job is not None:
                job = registry.claim(requests[0].replace(label=open_job.agent_session, job_id=open_job.job_id))
                self.unready_reason = (
                    None
                    if job is not None
                    else f"{self.name} is at job {assignment.job_id[:8]}, which cannot be claimed yet"
                )
                return job
            why = self._why_not_ready(assignment)
        except STORE_UNREACHABLE:
            raise
        except MamError as error:
            why = str(error)
        if why is None:
            return next((job for request in requests if (job := registry.claim(request)) is not None), None)
        queries = [Query(statuses=frozenset({PENDING, WAITING}), label=request.label) for request in requests]
        has_job = any(next(iter(registry.select(query)), None) is not None for query in queries)
        self.unready_reason = why if has_job else None
        return None

    def _note(self, registry: Registry) -> None:
        """Once per generation: a later generation finds by this note which jobs the earlier one holds."""
        if self._noted != self.record.generation_id:
            address = registry.store.address
            note_store(self._directory, self.record.agent_id, self.record.generation_id, address)
            self._noted = self.record.generation_id

    def _open_job(self, registry: Registry, assignment: Assignment) -> Job | None:
        """The assigned job, if it may come back to this session. If it has ended, the assignment ends."""
        try:
            job = registry.store.get(assignment.job_id)
        except UnknownJob:
            job = None
        if job is not None and (job.agent_session in self.labels or self._has_run(job)):
            comes_back = job.status is WAITING and job.waiting_for == SESSION
            if job.status in (PENDING, RUNNING) or comes_back:
                return job
        self.write_assignment(assignment.replace(turn=ENDED))
        return None

    def _has_run(self, job: Job) -> bool:
        """Whether this generation had the job, also if its worker served more labels then."""
        ran_in = (job.run or {}).get("session")
        return isinstance(ran_in, dict) and ran_in.get("generation_id") == self.record.generation_id

    def _why_not_ready(self, assignment: Assignment) -> str | None:
        """Why a line cannot be typed now; None if it can."""
        target = check_target(self.record, agent_def_dir="/")
        check_can_type(target)
        self.read_hooks()
        state = self.turns.state(assignment.at_ms if assignment.turn == INTERRUPTED else 0)
        still = self.screen_unchanged_seconds(target)
        if not self._screen.strip():
            return f"{self.name} shows nothing yet"  # some programs accept no key before they have drawn their screen
        if state is None or state.state in (DONE, GONE):
            settles = assignment.turn == INTERRUPTED and still < SETTLED_SECONDS
            return f"{self.name} was just interrupted" if settles else None
        if state.state in (WORKING, QUIET, NEEDS_PERMISSION) and still < STILL_SECONDS:
            return f"{self.name} is busy: {state.format_at(self._now_ms())}"
        return None

    def _renew(self) -> None:
        """The name may belong to a new generation by now."""
        try:
            record = require_live(by_any(self._directory, self._name), self._name)
        except MamError as error:
            self._lost_since = self._lost_since or time.monotonic()
            self.lost = error if time.monotonic() - self._lost_since > RESTART_SECONDS else None
            raise
        self.lost, self._lost_since = None, 0.0
        if record.generation_id != self.record.generation_id:
            self._take(record)
        self.record = record

    def _take(self, record: AgentRecord) -> None:
        if self._reader is not None:
            self._reader.close()
        self.record, self.turns = record, TurnTracker()
        self._reader = HookReader(self.root, record.generation_id)

    # -- what it does ----------------------------------------------------------------------------------------------

    def target(self) -> Target:
        """The session's pane, verified. Each mismatch raises an error of its own."""
        return check_target(self.record, agent_def_dir="/")

    def is_replaced(self) -> bool:
        """Whether the name has a new generation, or is being restarted."""
        record = self._directory.read(self.record.agent_id).record
        if record is None:
            return False
        return record.generation_id != self.record.generation_id or record.lifecycle.stop_reason == "restart"

    def is_over(self) -> bool:
        """Whether the directory knows that this generation has ended."""
        record = self._directory.read(self.record.agent_id).record
        return record is None or record.generation_id != self.record.generation_id or not record.live

    def is_gone(self) -> bool:
        state = process_state(self.record, self._now_ms())
        return state is not None and state.state == GONE

    def read_hooks(self) -> list[tuple[Json, Turn]]:
        """The new hook events, each with its turn as it was after that event."""
        heard = []
        for fields in self._fields():
            turn = self.turns.apply(fields)
            if turn is not None:
                heard.append((fields, turn))
        return heard

    def look_for_end(self, turn: Turn) -> None:
        """For a silent turn: its transcript may show an end that no hook reported. The end is appended to the hook log,
        so that every reader sees it."""
        end = end_in_transcript(self.tool, self.turns.transcript, turn.name)
        if end is not None:
            append(self.root, self.record.generation_id, to_bytes({**end, "at_ms": self._now_ms()}))

    def reread_hooks(self, assignment: Assignment) -> None:
        """The prompt of a long turn may have left the hook log; the rest of the log is then read as that turn."""
        self._take(self.record)
        if assignment.turn_name:
            start = {"hook_event_name": "UserPromptSubmit", "turn": assignment.turn_name, "mark": assignment.mark}
            self.turns.apply({**start, "at_ms": assignment.at_ms})
        self.read_hooks()

    def screen(self, target: Target) -> str:
        shown = target.tmux.run("capture-pane", "-p", "-t", target.pane.pane)
        if shown != self._screen:
            self._screen, self._screen_since = shown, time.monotonic()
        return shown

    def screen_unchanged_seconds(self, target: Target) -> float:
        """For how long the screen has not changed."""
        self.screen(target)
        return time.monotonic() - self._screen_since

    def state(self) -> State:
        now_ms = self._now_ms()
        from_hooks = self.turns.state()
        seen = None if from_hooks is not None else state_from_screen(self._screen, now_ms)
        return decide_state([process_state(self.record, now_ms), from_hooks, seen], now_ms)

    # -- its page --------------------------------------------------------------------------------------------------

    def assignment(self) -> Assignment:
        return read_assignment(self.root, self.record.generation_id)

    def write_assignment(self, assignment: Assignment) -> None:
        """Writes only the assignment of this generation; a newer one has its own."""
        write_assignment(self.root, assignment)

    def end_assignment(self, mark: str, turn: str = ENDED) -> None:
        assignment = self.assignment()
        if assignment.mark == mark and assignment.is_open:
            self.write_assignment(assignment.replace(turn=turn, at_ms=self._now_ms(), socket=""))

    def _fields(self) -> Iterator[Json]:
        assert self._reader is not None
        for line in self._reader.lines():
            if (fields := parse_hook_line(line)) is not None:
                yield fields

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000
