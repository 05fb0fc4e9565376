"""Ended jobs that were moved out of the way, and jobs of another registry that are taken in; in named queries."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod

from mam.jobs.change import Change
from mam.jobs.generation import Generations
from mam.stores.common import archived_line, lines_of
from mam.stores.port import Kept
from mam.stores.sql.rows import job_of, new_row
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from mam.clock import Moment
    from mam.jobs.change import Line
    from mam.jobs.record import Job

    T = TypeVar("T")

PAGE = 500


class SqlArchive(ABC):
    """The part of an SQL store that the hot verbs never touch."""

    address: str

    @abstractmethod
    def _act(self, do: Callable[..., T], *given: Any) -> T: ...

    @abstractmethod
    def _rows(self, query: str, **values: Any) -> list[Any]: ...

    @abstractmethod
    def _moment(self) -> Moment: ...

    @abstractmethod
    def _write_new(self, change: Change, root: str | None) -> None: ...

    @abstractmethod
    def _move_to_archive(self, job_ids: list[str], lines: dict[str, str]) -> None:
        """Whole or not at all, and without harm when it is done twice; `lines` are those of the journal, by job."""

    @abstractmethod
    def _forget(self, job_id: str) -> None:
        """The job's row and what was told about it, if they are there."""

    # -- ended jobs ------------------------------------------------------------------------------------------------

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        moment = self._moment()
        lines = {job_id: as_text([archived_line(job_id, moment)]) for job_id in job_ids}
        self._move_to_archive(list(job_ids), lines)
        moved = {row[0] for row in self._rows("only archived", job_ids=json.dumps(list(job_ids)))}
        return [job_id for job_id in job_ids if job_id in moved]

    def archived(self, job_id: str) -> Kept | None:
        rows = self._rows("archived", job_id=job_id)
        return self._kept(*rows[0]) if rows else None

    def archived_with_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._rows("archived with prefix", prefix=prefix, behind=prefix + "\U0010ffff", limit=limit)
        return [row[0] for row in rows]

    def archive_contents(self, *, newest_first: bool = False) -> Iterator[Kept]:
        query = "archive newest first" if newest_first else "archive contents"
        place = sys.maxsize if newest_first else -sys.maxsize
        while rows := self._rows(query, place=place, limit=PAGE):
            for number, record, prompt, events in rows:
                place = number
                yield self._kept(record, prompt, events)

    def _kept(self, record: str, prompt: str, events: str) -> Kept:
        return Kept(job=job_of(record, prompt, self.address), events=json.loads(events))

    def _newest_archived(self, job_id: str) -> Job | None:
        """The last retry of a job that is archived itself."""
        rows = self._rows("newest archived", job_id=job_id)
        return job_of(rows[0][0], rows[0][1], self.address) if rows else None

    def generations(self) -> dict[str, Generations]:
        return {
            agent_id: Generations(current=current, superseded=tuple(json.loads(superseded)))
            for agent_id, current, superseded in self._rows("generations")
        }

    # -- jobs of another registry ------------------------------------------------------------------------------------

    def take_in(self, batch: Sequence[Kept], *, archived: bool = False) -> None:
        def do() -> None:
            moment = self._moment()
            for kept in batch:
                if archived:
                    self._put_into_archive(kept)
                else:
                    self._take_in(kept, lines_of(kept, moment))
            if not archived and batch:
                self._rows("number behind", number=max(kept.job.number for kept in batch))

        self._act(do)

    def _take_in(self, kept: Kept, lines: tuple[Line, ...]) -> None:
        self._forget(kept.job.job_id)
        self._write_new(Change(job=kept.job, lines=lines), self._root_of(kept.job))

    def _put_into_archive(self, kept: Kept) -> None:
        job = kept.job
        self._rows(
            "put into archive",
            job_id=job.job_id,
            number=job.number,
            key=job.key,
            retry_of=job.retry_of,
            root=self._root_of(job),
            record=new_row(job, None).record,
            prompt=job.prompt,
            events=as_text(kept.events),
        )

    def _root_of(self, job: Job) -> str | None:
        return None if job.retry_of is None else str(self._rows("root", job_id=job.retry_of)[0][0])
