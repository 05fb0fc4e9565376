"""RecordFiles that other programs have written and mam has not taken over: `.hermes/jobs`, an early `.mam/jobs`."""

from __future__ import annotations

import os

from mam.errors import BadRecord
from mam.jobs.adopt import adopt_new
from mam.jobs.input_rules import is_job_id
from mam.stores.common import new_claim_id
from mam.stores.files.records import RecordFiles, complete_events, record_name
from mam.stores.port import JobWithEvents, Problem
from mam.util.clock import Moment, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.generation import Generations
    from mam.jobs.pause import Pause
    from mam.stores.files.records import ParsedRecord


class OldJobs:
    """Read without a lock and without an index: not even an empty file is left there."""

    def __init__(self, path: str) -> None:
        self.address = os.path.realpath(path)
        self._descriptor = os.open(self.address, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._records = RecordFiles(self.address, self._descriptor)
        self._problems: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._claims: dict[str, str] = {}
        """The claim ids of those that run; a second look must give the same as the first."""

    def ids(self) -> Sequence[str]:
        found = [one for job_id in self._names() if (one := self._found(job_id)) is not None]
        found.sort(key=lambda one: (parse_time(one.job.created_at), one.job.number, one.job.job_id))
        self._numbers = {one.job.job_id: number for number, one in enumerate(found, start=1)}
        return list(self._numbers)

    def read(self, job_id: str) -> JobWithEvents | None:
        """As the first look of a registry would take it over: with a number, and with a lease if it runs."""
        found = self._found(job_id)
        if found is None:
            return None
        number = self._numbers.setdefault(job_id, len(self._numbers) + 1)
        # The time of the last write, so that a second read returns the same.
        about = os.stat(record_name(job_id), dir_fd=self._descriptor)
        new_claim = self._claims.setdefault(job_id, new_claim_id())
        job = adopt_new(found.job, number, Moment(wall_ms=about.st_mtime_ns // 1_000_000), new_claim).job
        return JobWithEvents(job=job, events=complete_events(self._records.events(job_id), job.last_seq))

    def archive(self) -> Iterator[JobWithEvents]:
        return iter(())

    def secrets(self, job_id: str) -> dict[str, str]:
        found = self._found(job_id)
        return {} if found is None else {name: str(value) for name, value in found.secrets.items()}

    def pauses(self) -> list[Pause]:
        return []

    def generations(self) -> dict[str, Generations]:
        return {}

    def state(self) -> str:
        stamps = []
        for name in sorted(os.listdir(self._descriptor)):
            found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
            stamps.append(f"{name}:{found.st_ino}:{found.st_mtime_ns}:{found.st_size}")
        return "\n".join(stamps)

    def changed_since(self, state: str) -> list[str]:
        now, before = {*self.state().splitlines()}, {*state.splitlines()}
        names = {line.partition(":")[0] for line in now ^ before}
        return sorted({name.partition(".")[0] for name in names if is_job_id(name.partition(".")[0])})

    def problems(self) -> list[Problem]:
        return [Problem(file=file, problem=problem) for file, problem in sorted(self._problems.items())]

    def _names(self) -> list[str]:
        names = [name for name in os.listdir(self._descriptor) if name.endswith(".json")]
        for name in names:
            if not is_job_id(name[:-5]) and not name.startswith("."):
                self._problems[name] = "its name is not a job id"
        return [name[:-5] for name in names if is_job_id(name[:-5])]

    def _found(self, job_id: str) -> ParsedRecord | None:
        try:
            found = self._records.read(job_id)
        except FileNotFoundError:
            return None
        except BadRecord as bad:
            self._problems[f"{job_id}.json"] = str(bad.facts["problem"])
            return None
        self._problems.pop(f"{job_id}.json", None)
        return found
