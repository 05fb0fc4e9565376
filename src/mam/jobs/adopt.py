"""Adopts a record that another program wrote: an old script, an editor, a copy.

Such a write carries no attempt, so it is unfenced. mam takes over its fields, restores its own fields that the file
lacks, and refuses an illegal status while it keeps the rest of the write.
"""

from __future__ import annotations

from mam.errors import MamError, Refused
from mam.jobs import acts
from mam.jobs.change import Change, audit_record, marked, touched
from mam.jobs.record import DEPENDENCY, Job
from mam.jobs.status import PENDING, RUNNING, WAITING
from mam.jobs.sweep import with_lease
from mam.util.clock import Moment, iso_second, parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.change import AuditRecord

FOREIGN = "foreign"

KEPT = frozenset(
    {"number", "attempt", "claim_id", "owner", "lease", "claimant", "claimed_at", "heard_at", "ended_at",
     "ended_attempt", "losses", "retries", "waiting_for", "due_at", "key", "retry_of", "continues", "conversation",
     "directory_of", "job_id", "created_at",
     "schema_version", "after", "exclusive", "parent_id", "depth", "validation", "supervised", "said", "checks", "run",
     "seen", "applied", "repository", "inbox", "may_ask", "questions", "registered_by"}
)  # fmt: skip
"""A file cannot change these: they fence, order and name the job."""

_SEPARATE = frozenset({"status", "last_seq", "updated_at", "unknown"})


class Adoption(Frozen):
    change: Change
    complaint: str | None = None
    """Which part of the foreign write was refused, for `list` and `doctor`."""


def adopt_new(found: Job, number: int, moment: Moment, new_claim: str | None = None) -> Change:
    """A record that mam has not seen: it gets a number and, if it runs, a lease and the claim id `new_claim`. Its
    sequence numbers are marked as imported. A claim id in the file is ignored."""
    job = _without_foreign_claim(found.replace(number=number, claim_id=new_claim if found.status is RUNNING else None))
    job = with_lease(job, moment)
    lines = [audit_record("registered", moment, job, status=job.status, by=FOREIGN)]
    if job.last_seq:
        lines.append(audit_record("imported", moment, job, seq=1, upto=job.last_seq))
    return Change(job=job, lines=tuple(lines))


def _without_foreign_claim(job: Job) -> Job:
    """Clears fields that do not fit the status: a copied record may bring a lease that no worker holds."""
    if job.status is WAITING and job.due_at is None and not (job.waiting_for == DEPENDENCY and job.after):
        job = job.replace(status=PENDING)  # otherwise the wait would never end
    if job.status is not RUNNING and job.lease is not None:
        job = job.replace(lease=None, owner=None)
    if job.questions:
        job = job.replace(questions=[])  # the agent that asked them waits in another registry
    if job.supervised or job.claimant is not None:
        job = job.replace(supervised=False, claimant=None)  # no worker and no session of this registry holds it
    if job.status is not WAITING and (job.due_at or job.waiting_for):
        job = job.replace(due_at=None, waiting_for=None)
    created_at = iso_second(parse_time(job.created_at))
    return job if job.created_at == created_at else job.replace(created_at=created_at)


def adopt_known(
    before: Job, found: Job, given: frozenset[str], moment: Moment, rival: str | None = None,
    new_claim: str | None = None,
) -> Adoption:  # fmt: skip
    """A record that mam knew as `before` and whose file now holds `found`. `given` names the fields in the file,
    `rival` is the job that runs under its exclusive key, `new_claim` the id of a claim that the file implies."""
    taken = {name: getattr(found, name) for name in _taken(before, found, given)}
    unknown = {**before.unknown, **found.unknown}
    if unknown != before.unknown:
        taken["unknown"] = unknown
    job = before
    change = Change(job=job)
    restored = _restored(before, found, given)
    if taken or restored:
        line = audit_record("adopted", moment, job, fields=sorted(taken) or None, restored=restored or None)
        change = change.then(touched(job, moment, taken), line)
    if found.last_seq > job.last_seq:
        change = marked(change, "imported", found.last_seq, moment)
    return _with_status(change, found, moment, rival, new_claim)


def _taken(before: Job, found: Job, given: frozenset[str]) -> list[str]:
    adoptable = [name for name in Job.field_names if name in given and name not in KEPT | _SEPARATE]
    return [name for name in adoptable if getattr(found, name) != getattr(before, name)]


def _restored(before: Job, found: Job, given: frozenset[str]) -> list[str]:
    """Fields that the file lacks, or changes although it cannot."""
    names = [name for name in Job.field_names if name not in ("unknown", "claim_id")]
    lost = [name for name in before.unknown if name not in given]
    if found.last_seq < before.last_seq:
        lost.append("last_seq")
    return lost + [
        name for name in names if name not in given or (name in KEPT and getattr(found, name) != getattr(before, name))
    ]


def _with_status(change: Change, found: Job, moment: Moment, rival: str | None, new_claim: str | None) -> Adoption:
    job = change.job
    if found.status is job.status:
        return Adoption(change=change)
    try:
        if found.status is RUNNING and rival is not None:
            raise Refused(why=f"Job {rival} runs under its exclusive key {job.exclusive!r}.")
        step = acts.set_status(job, moment, to=found.status, attempt=None, new_claim=new_claim)
    except MamError as error:
        line = audit_record(
            "refused", moment, job, **{"from": job.status, "to": found.status}, by=FOREIGN, why=str(error)
        )
        return Adoption(change=change.then(job, line), complaint=str(error))
    lines = [_as_foreign(line) if line["event"] == "status_changed" else line for line in step.lines]
    return Adoption(change=change.then(step.job, *lines))


def _as_foreign(line: AuditRecord) -> AuditRecord:
    return {**line, "by": FOREIGN, "unfenced": True}
