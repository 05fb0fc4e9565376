"""The index of a files store: a cache, which is made anew when it is damaged."""

from __future__ import annotations

import os
import sqlite3

from mam.doctor.finding import fine, wrong
from mam.errors import StoreUnavailable
from mam.stores.files.index import put_aside
from mam.stores.files.lock import registry_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient

FILE = "index.sqlite"


def look(patient: Patient) -> Iterator[Finding]:
    home, directory = patient.home, patient.directory
    path = os.path.join(home, FILE) if home else ""
    if not path or directory is None or not os.path.exists(path):
        return
    problem = _problem(path)
    if problem is None:
        patient.closed = None
        yield fine("the index is whole")
        return
    patient.closed = StoreUnavailable(store=directory, problem="its index has to be mended before it is looked at")
    yield wrong(
        f"the index {path} is damaged: {problem}",
        "claims are chosen by it; it is a cache, and made anew from journal and records",
        fix=lambda: make_anew(patient),
    )


def make_anew(patient: Patient) -> None:
    assert patient.home is not None
    assert patient.directory is not None
    patient.close()
    with registry_lock(patient.directory, patient.config.lock_wait_seconds):
        put_aside(os.path.join(patient.home, FILE))
    patient.closed = None
    assert patient.store.end()  # opening it makes the index from journal and records


def _problem(path: str) -> str | None:
    try:
        database = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=10)
        try:
            said = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            return None if said == "ok" else str(said).splitlines()[-1]
        finally:
            database.close()
    except sqlite3.DatabaseError as error:
        return str(error)


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
