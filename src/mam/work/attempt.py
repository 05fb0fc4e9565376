"""One attempt at one job, from the claim to its end: prepare, run, watch, check, finish.

Nothing in here may keep the worker from its next job: what goes wrong becomes the job's reason, and what cannot even be
written down is left to the lease.
"""

from __future__ import annotations

import os
import time

from mam.errors import ClaimLost, MamError, PlaceMissing, StoreUnavailable
from mam.jobs.supervised import Ending
from mam.state import make_private
from mam.work import watching
from mam.work.adapters.port import SAID
from mam.work.brief import brief
from mam.work.holding import Holding
from mam.work.home import write_private
from mam.work.messages import Ended, Failed
from mam.work.outcome import failure, result_of, run_facts
from mam.work.places import prepare
from mam.work.runner import Plan
from mam.work.takeover import end_earlier
from mam.work.validator import check
from mam.work.watching import Watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Job, Json
    from mam.work.adapters.port import Launch
    from mam.work.crew import Crew
    from mam.work.door import Door
    from mam.work.messages import LastMessage
    from mam.work.places import Place

POSTPONED_SECONDS = 60.0
_PAUSE_SECONDS = 0.5


class Attempt:
    def __init__(self, crew: Crew, job: Job) -> None:
        self.job = job
        self._crew = crew
        self._holding = Holding(crew.registry, job)
        self.watching = Watching(self._holding, job, crew.lease_seconds, crew.grace_seconds)
        self._private = os.path.join(crew.work_directory, job.job_id, str(job.attempt))
        self._begun: Json = {"attempt": job.attempt, "host": os.uname().nodename}

    def run(self) -> None:
        """Never raises."""
        try:
            self._run()
        except ClaimLost as lost:
            self._crew.say(self.job, f"given up: {lost}")
        except PlaceMissing as missing:
            self._postpone(str(missing))
        except StoreUnavailable as away:
            self._crew.say(self.job, f"left to its lease: {away}")
        except MamError as error:
            self._finish(Ending(run=self._begun, reason=str(error)))
        except OSError as error:
            self._finish(Ending(run=self._begun, reason=f"the worker's system: {error.strerror or error}"))
        except Exception as error:
            self._finish(Ending(run=self._begun, reason=f"a bug in mam: {type(error).__name__}: {error}"))

    def _postpone(self, why: str) -> None:
        self._crew.say(self.job, why)
        try:
            self._insist(lambda: self._holding.postpone(why, POSTPONED_SECONDS))
        except MamError as error:
            self._crew.say(self.job, f"left to its lease: {error}")

    def _run(self) -> None:
        self._end_earlier()
        place = prepare(self.job, self._crew.work_directory, self._crew.workdirs)
        self._begun |= {"place": place.path, "branch": place.branch, "note": place.note}
        make_private(self._crew.work_directory)
        make_private(self._private)
        text = brief(self.job)
        brief_file = os.path.join(self._private, "brief.md")
        write_private(brief_file, text.encode(errors="surrogateescape"))
        launch = self._crew.adapter(self.job).launch(self.job, text, place, brief_file)
        if launch is None:
            self._by_hand(place, text)
            return
        with self._crew.doors.open(self.job.job_id, self.job.attempt, self.watching.sign) as door:
            last = self._agent(launch, place, door)
        self._end(last, launch.success, launch.retry_codes, place)

    def _end_earlier(self) -> None:
        """Two attempts are never both at work where this worker can help it; where it cannot, the record says so."""
        run = self.job.run
        if run is None or "exit_code" in run or "process" not in run:
            return
        left = end_earlier({**run["process"], "host": run.get("host")})
        if left is not None:
            self._begun["earlier"] = left

    def _agent(self, launch: Launch, place: Place, door: Door) -> LastMessage:
        env = {**self._crew.environment(self.job), **launch.env, "MAM_SOCKET": door.address}
        plan = Plan(argv=tuple(launch.argv), env=env, cwd=place.path, stdin=launch.stdin)
        with self._crew.guardian.start(plan, os.path.join(self._private, "output")) as run:
            first = run.wait(None)
            if run.started is not None:
                self._begun["process"] = run.started.to_json()
                self._holding.started(self._begun)
                return self.watching.until_ended(run)
            return run.ended or Failed(reason=f"the agent did not start: {first}")

    def _by_hand(self, place: Place, text: str) -> None:
        """A person does it: the brief is shown, and the job is theirs until they say `mam complete` or `mam fail`."""
        self._holding.started(self._begun)
        self._crew.show(text)
        self.watching.until_said()
        self._end(None, SAID, (), place)

    # -- how it ends -----------------------------------------------------------------------------------------------

    def _end(self, last: LastMessage | None, success: str, retry_codes: tuple[int, ...], place: Place) -> None:
        facts = run_facts(self._begun, last)
        because = self.watching.ended_because
        if because == watching.REVOKED:
            self._crew.say(self.job, "given up: the claim is gone")
            return
        if because == watching.STOPPING and not (isinstance(last, Ended) and last.tree_ended_because is None):
            self._insist(lambda: self._holding.hand_back(facts))
            return
        said = self._insist(self._holding.look).said
        # One that said it was done and then would not go was ended by the worker; that is no failure of its own.
        own = None if because == watching.LINGERED else last
        ending = self._stopped(because) or failure(own, said, success, retry_codes)
        result = result_of(last, said)
        if ending is None:
            ending = self._checked(place)
        self._finish(ending.replace(run=facts, result=result))

    def _stopped(self, because: str | None) -> Ending | None:
        if because == watching.TIMED_OUT:
            return Ending(run={}, reason=f"timed out after {self.job.timeout_sec} s")
        if because == watching.SILENT:
            return Ending(run={}, reason=f"silent for {self.job.idle_timeout_sec} s")
        return None

    def _checked(self, place: Place) -> Ending:
        job = self.job
        if not job.expected_artifacts and job.validation is None:
            return Ending(run={})
        checks = check(job, place.path, self._crew.guardian, self._private, on_run=self.watching.attach)
        return Ending(run={}, checks=checks, reason=checks["problem"])

    def _finish(self, ending: Ending) -> None:
        try:
            job = self._insist(lambda: self._holding.finish(ending))
        except MamError as error:
            self._crew.say(self.job, f"its end could not be written: {error}")
            return
        why = f": {job.reason}" if job.reason and job.status != "completed" else ""
        self._crew.say(job, f"{job.status}{why}")

    def _insist(self, write: Callable[[], Job]) -> Job:
        """A store that is away for a moment must not cost an hour's work: it is asked until the lease is over."""
        ends = time.monotonic() + self._crew.lease_seconds
        while True:
            try:
                return write()
            except StoreUnavailable:
                if time.monotonic() >= ends:
                    raise
                time.sleep(_PAUSE_SECONDS)
