"""Rows that mam cannot read, and record files that another program wrote."""

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
        if problem.file.endswith(".json"):
            why = "the registry goes on with what it has; `mam adopt` takes such a file over"
            yield note(f"{problem.file}: {problem.problem}", why, f"mam adopt {problem.file.removesuffix('.json')}")
        else:
            yield wrong(f"{problem.file}: {problem.problem}", "no worker gets this job until its row is mended")
    if survey.expired:
        yield note(
            f"{count(len(survey.expired), 'running job')} with a lease that ran out: {first_few(survey.expired)}",
            "their workers are gone; the next claim takes them back",
            "mam worker, or mam pick",
        )
    if not survey.problems:
        counts = ", ".join(f"{number:,} {status}" for status, number in survey.statuses.items())
        yield fine(f"{count(survey.statuses.total(), 'job')}{': ' + counts if counts else ''}")
