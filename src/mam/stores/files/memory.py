"""The records that this process wrote last, of jobs that go on: whoever claims a job is likely to end it.

Memory is never believed by itself: a record is as it was written as long as its file has the stamp that it had then.
"""

from __future__ import annotations

from mam.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.files.index import Stamp

MOST = 32
LARGEST = 64 * 1024


class Written(Frozen):
    """A record, and what was written of it."""

    job: Job
    stamp: Stamp
    text: bytes


class Memory:
    def __init__(self) -> None:
        self._written: dict[str, Written] = {}

    def keep(self, job: Job, stamp: Stamp, text: bytes) -> None:
        self.forget(job.job_id)
        if not job.status.ended and len(text) <= LARGEST:
            self._written[job.job_id] = Written.of({"job": job, "stamp": stamp, "text": text})
            if len(self._written) > MOST:
                del self._written[next(iter(self._written))]

    def forget(self, job_id: str) -> None:
        self._written.pop(job_id, None)

    def recall(self, job_id: str) -> Written | None:
        return self._written.get(job_id)
