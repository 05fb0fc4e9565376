"""Submits a job to a live session: one typed line that names a file, and proof that a turn began with it.

The proof is the agent's hook; without hooks, its transcript; without a known transcript, its screen. The record stores
which one it was. mam.agents.send ensures that nothing is typed over a question, over a person's text, or into another
generation.
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
"""After this time Enter is pressed once more, if the line is still on the screen and no hook has reported it."""
BETWEEN_SECONDS = 15.0
_CALM_SECONDS = 1.0
_LOOK_SECONDS = 0.1


class Submission:
    """One job for one session. `over` returns whether the attempt has been stopped."""

    def __init__(self, session: LiveSession, job: Job, socket: str, over: Callable[[], bool]) -> None:
        self._session = session
        self._job = job
        self._socket = socket
        self._over = over
        self.mark = f"{job.job_id}.{job.attempt}"
        self.proof = ""
        self.resumed = False
        """Whether the session already worked on the job, so that nothing was typed."""

    def run(self, brief: str) -> None:
        """Returns when the turn has begun. Raises MamError if the session cannot take the job; nothing was submitted
        then."""
        assignment = self._session.assignment()
        if assignment.is_open and assignment.job_id == self._job.job_id and self._resume(assignment):
            return
        self._calm_between(assignment)
        path = self._write(brief)
        before = self._session.assignment()
        after = before.replace(
            job_id=self._job.job_id, attempt=self._job.attempt, claim_id=self._job.claim_id or "", mark=self.mark,
            turn=TYPING, turn_name="", proof="", socket=self._socket, served=before.served + 1,
            may_ask=self._job.may_ask,
        )  # fmt: skip
        self._session.write_assignment(after)
        try:
            send(self._session.target(), f"Read {path} and do what it says. ({MARK}{self.mark})")
        except MamError:
            self._session.write_assignment(before)
            raise
        self._await_proof(self._session.target())
        if self.proof:  # otherwise the attempt was stopped, and the next worker reads the state itself
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
        """Writes the brief where the agent, and no other user, may read it."""
        directory = make_private(os.path.join(self._session.root, BRIEFS))
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        path = os.path.join(directory, f"{self.mark}.md")
        write_private(path, brief.encode(errors="surrogateescape"))
        return path

    def _calm_between(self, assignment: Assignment) -> None:
        """Types the user's own text between two jobs, such as `/clear`, and waits until it takes effect."""
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
        """With working hooks, transcript and screen count only after the hook had its time."""
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
        """Whether the line is on the screen above the input line. The screen wraps long lines."""
        place = target.tmux.run("display-message", "-p", "-t", target.pane.pane, "#{cursor_y}").strip()
        lines = self._session.screen(target).split("\n")
        above = lines[: int(place)] if place.isdigit() else lines
        return f"({MARK}{self.mark})" in "".join(line.strip() for line in above)

    def _press_again(self, target: Target) -> None:
        """Some programs lose an Enter while they process a paste."""
        try:
            check_can_type(target)
            press_key(target, "Enter")
        except MamError:
            return

    def _handed(self, assignment: Assignment) -> None:
        turn = self._session.turns.find_by_mark(self.mark)
        name, began = ("", 0) if turn is None else (turn.name, turn.began_ms)
        self._session.write_assignment(assignment.replace(turn=HANDED, proof=self.proof, turn_name=name, at_ms=began))
