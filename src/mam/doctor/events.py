"""The event logs of a files store, line by line beside the journal they are a copy of."""

from __future__ import annotations

from mam.doctor.finding import fine, wrong
from mam.workspace import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient

MOST = 10


def look(patient: Patient) -> Iterator[Finding]:
    store = patient.opened()
    if store is None or patient.kind != FILES:
        return
    from mam.stores.files.store import FilesStore

    assert isinstance(store, FilesStore)
    found = store.compare_events()
    for problem in found[:MOST]:
        job_id = problem.file.removesuffix(".events.log")

        def anew(job_id: str = job_id) -> None:
            store.mend_events(job_id)

        yield wrong(
            f"{problem.file}: {problem.problem}",
            "`mam logs` shows it; all events are in the journal, and what is there now is kept in .store/quarantine",
            fix=anew,
        )
    if not found:
        yield fine("the event logs are what the journal told")
