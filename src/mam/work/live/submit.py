"""Handing a job to a live session: one typed line that names a file, and proof that a turn began with it.

The proof is the agent's own hook; where there are none, its transcript; where that is not known, its screen. Which one
it was goes into the record. Never is anything typed over a question, over a person, or into another generation: all
that is checked where texts are sent (mam.agents.send).
"""

from __future__ import annotations

import os
import time

from mam.agents.errors import TurnNotBegun
from mam.agents.hook_events import MARK
from mam.agents.hook_setup import BRIEFS
from mam.agents.send import check_can_type, press_key, send
from mam.errors import MamError
from mam.jobs.activity import HOOK, SCREEN
from mam.util.state_dir import make_private
from mam.work.job_dir import write_private
from mam.work.live.assignment import HANDED, TYPING, Assignment
from mam.work.live.transcripts import transcript_has

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.control import Target
    from mam.jobs.record import Job
    from mam.work.live.session import LiveSession

TRANSCRIPT = "transcript"
PROOF_SECONDS = 30.0
AGAIN_SECONDS = 4.0
"""After which Enter is pressed once more, if the line is still to be seen and the hooks have not told of it."""
BETWEEN_SECONDS = 15.0
_CALM_SECONDS = 1.0
_LOOK_SECONDS = 0.1


class Submission:
    """Of one job, to one session. `over` says whether it has become pointless."""

    def __init__(self, session: LiveSession, job: Job, socket: str, over: Callable[[], bool]) -> None:
        self._session = session
        self._job = job
        self._socket = socket
        self._over = over
        self.mark = f"{job.job_id}.{job.attempt}"
        self.proof = ""
        self.resumed = False
        """Whether the session was found at the job, so that nothing was typed."""

    def run(self, brief: str) -> None:
        """Returns when the turn has begun. MamError when the session cannot take it; nothing was submitted then."""
        assignment = self._session.assignment()
        if assignment.is_open and assignment.job_id == self._job.job_id and self._resume(assignment):
            return
        self._calm_between(assignment)
        path = self._write(brief)
        before = self._session.assignment()
        after = before.replace(
            job_id=self._job.job_id, attempt=self._job.attempt, claim_id=self._job.claim_id or "", mark=self.mark,
            turn=TYPING, turn_name="", proof="", socket=self._socket, served=before.served + 1,
        )  # fmt: skip
        self._session.write_assignment(after)
        try:
            send(self._session.target(), f"Read {path} and do what it says. ({MARK}{self.mark})")
        except MamError:
            self._session.write_assignment(before)
            raise
        self._await_proof(self._session.target())
        if self.proof:  # else it became pointless meanwhile, and whoever comes next has to look for itself
            self._handed(after)

    # -- after a worker that was killed ----------------------------------------------------------------------------

    def _resume(self, assignment: Assignment) -> bool:
        session, self.mark = self._session, assignment.mark
        session.read_hooks()
        if session.turns.find_by_mark(assignment.mark) is None and assignment.turn_name:
            session.reread_hooks(assignment)
        self.proof = assignment.proof if assignment.turn == HANDED else self._proof(session.target())
        if not self.proof:
            self.mark = f"{self._job.job_id}.{self._job.attempt}"
            return False
        self.resumed = True
        held = {"attempt": self._job.attempt, "claim_id": self._job.claim_id or ""}
        self._handed(assignment.replace(**held, socket=self._socket))
        return True

    # -- the line --------------------------------------------------------------------------------------------------

    def _write(self, brief: str) -> str:
        """Where the agent may read without asking, and nobody else."""
        directory = make_private(os.path.join(self._session.root, BRIEFS))
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        path = os.path.join(directory, f"{self.mark}.md")
        write_private(path, brief.encode(errors="surrogateescape"))
        return path

    def _calm_between(self, assignment: Assignment) -> None:
        """The user's own text between two jobs, `/clear` for instance, and a moment for it to take effect."""
        session = self._session
        if session.between is None or not assignment.served:
            return
        target, cleared = session.target(), session.turns.cleared_ms
        send(target, session.between)
        ends = time.monotonic() + BETWEEN_SECONDS
        while time.monotonic() < ends and not self._over():
            time.sleep(_LOOK_SECONDS)
            session.read_hooks()
            turn = session.turns.latest
            busy = turn is not None and not turn.ended
            if not busy and (
                session.turns.cleared_ms > cleared or session.screen_unchanged_seconds(target) > _CALM_SECONDS
            ):
                return

    # -- proof -----------------------------------------------------------------------------------------------------

    def _await_proof(self, target: Target) -> None:
        begun, again = time.monotonic(), False
        while not self.proof:
            waited = time.monotonic() - begun
            if self._over() or self._session.is_gone():
                return
            if waited > PROOF_SECONDS:
                raise TurnNotBegun(name=self._session.name, why="no hook, no transcript and no screen shows it")
            time.sleep(_LOOK_SECONDS)
            self.proof = self._proof(target, patient=waited < PROOF_SECONDS / 2)
            if not self.proof and not again and waited > AGAIN_SECONDS and self._session.turns.has_hooks:
                again = True
                self._press_again(target)

    def _proof(self, target: Target, *, patient: bool = False) -> str:
        """With hooks that work the other two are only asked when they have been waited for."""
        session = self._session
        session.read_hooks()
        if session.turns.find_by_mark(self.mark) is not None:
            return HOOK
        # Some agents call their first hook at their first prompt.
        if patient and (session.turns.has_hooks or target.manifest.hooks):
            return ""
        if transcript_has(f"({MARK}{self.mark})", session.tool, session.turns.transcript):
            return TRANSCRIPT
        if session.turns.has_hooks:
            return ""
        return SCREEN if self._is_taken(target) else ""

    def _is_taken(self, target: Target) -> bool:
        """Whether the line is to be seen, and not where the next one is typed. The screen breaks long lines."""
        place = target.tmux.run("display-message", "-p", "-t", target.pane.pane, "#{cursor_y}").strip()
        lines = self._session.screen(target).split("\n")
        above = lines[: int(place)] if place.isdigit() else lines
        return f"({MARK}{self.mark})" in "".join(line.strip() for line in above)

    def _press_again(self, target: Target) -> None:
        """Some programs swallow an Enter while they take in a paste."""
        try:
            check_can_type(target)
            press_key(target, "Enter")
        except MamError:
            return

    def _handed(self, assignment: Assignment) -> None:
        turn = self._session.turns.find_by_mark(self.mark)
        name, began = ("", 0) if turn is None else (turn.name, turn.began_ms)
        self._session.write_assignment(assignment.replace(turn=HANDED, proof=self.proof, turn_name=name, at_ms=began))
