"""Check for unreadable rows, changed record files and expired leases."""

from __future__ import annotations

from mam.doctor.finding import count, fine, first_few, note, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    survey = context.survey()
    if survey is None:
        return
    for problem in survey.problems:
        what = f"{problem.file}: {problem.problem}"
        if problem.mend is None:
            yield wrong(what, "no worker can claim this job until its row is repaired")
        elif problem.mend == "mam rebuild":
            yield wrong(what, "commands that write exit with 9", problem.mend)
        else:
            yield note(what, "mam ignores the change; `mam adopt` accepts it", problem.mend)
    if survey.expired:
        yield note(
            f"{count(len(survey.expired), 'running job')} with an expired lease: {first_few(survey.expired)}",
            "their workers are gone; the next claim returns the jobs to pending",
            "mam worker, or mam pick",
        )
    if not survey.problems:
        counts = ", ".join(f"{number:,} {status}" for status, number in survey.statuses.items())
        yield fine(f"{count(survey.statuses.total(), 'job')}{': ' + counts if counts else ''}")
