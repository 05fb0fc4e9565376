"""Records that mam could not read, or did not take over as somebody else wrote them."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, note, some, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient


def look(patient: Patient) -> Iterator[Finding]:
    survey = patient.survey()
    if survey is None:
        return
    for problem in survey.problems:
        yield wrong(
            f"{problem.file}: {problem.problem}",
            "nobody can claim, finish or see this job until its file is mended",
            f"${{EDITOR:-vi}} {os.path.join(patient.directory or '', problem.file)}"
            if problem.file.endswith(".json")
            else None,
        )
    if survey.expired:
        yield note(
            f"{count(len(survey.expired), 'running job')} with a lease that ran out: {some(survey.expired)}",
            "their workers are gone, and nobody has claimed since; the next claim takes them back",
            "mam worker, or mam pick",
        )
    if not survey.problems:
        counts = ", ".join(f"{number:,} {status}" for status, number in survey.statuses.items())
        yield fine(f"{count(survey.statuses.total(), 'job')}{': ' + counts if counts else ''}")
