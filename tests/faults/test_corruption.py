"""Any byte of any file is damaged: mam names the damage, reads the other records and discards nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from mam.audit.sync import AuditLog
from mam.errors import MamError
from mam.registry import Registry
from mam.stores.files.rebuild import rebuild
from mam.stores.port import Query
from mam.util.clock import SystemClock
from tests.audit.support import history_in, history_in_log
from tests.faults.damage import damaged, with_every_damage
from tests.faults.invariants import act, check_files
from tests.faults.store_kinds import STORE_KINDS

if TYPE_CHECKING:
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

FILES, SQLITE = STORE_KINDS["files"], STORE_KINDS["sqlite"]


@pytest.fixture
def origin(folder: Path) -> Path:
    """One job that has ended, one that runs, one that waits; with an audit log."""
    place = folder / "origin"
    FILES.make(place)
    store = FILES.open(place)
    _fill(Registry(store, AuditLog(str(place / "logs"))))
    store.close()
    store = FILES.open(place)
    act(store)  # which notes that the record files are written
    store.close()
    return place


def _fill(registry: Registry) -> None:
    for job_id in ("ended", "runs", "waits"):
        registry.register(prompt="p", agent="codex", job_id=job_id)
    registry.pick("codex", owner="me")
    registry.publish("ended", event="progress", attempt=1)
    registry.complete("ended", attempt=1, result="r")
    registry.pick("codex", owner="me")
    registry.publish("runs", event="progress", attempt=1)


def statuses(store: Store) -> dict[str, str]:
    return {job.job_id: str(job.status) for job in store.select(Query())}


WHOLE = {"ended": "completed", "runs": "running", "waits": "pending"}


@with_every_damage
def test_a_damaged_record_file_is_named(origin: Path, damage: str) -> None:
    """The database is the source: mam names the file, leaves it as it is, and keeps it aside when it writes the job."""
    for at, place, spoilt in damaged(origin, "jobs/runs.json", damage, stride=37):
        store = FILES.open(place)
        assert statuses(store) == WHOLE
        assert store.get("runs").attempt == 1
        assert [problem.file for problem in store.problems()] == ["runs.json"], at
        assert (place / "jobs/runs.json").read_bytes() == spoilt, "mam changed the file"
        Registry(store).publish("runs", event="progress", attempt=1)
        kept = [file.read_bytes() for file in (place / "jobs/.store/aside").glob("runs.*")]
        assert kept == ([spoilt] if spoilt else []), f"byte {at}: discarded"
        check_files(FILES, place, store)
        store.close()


@with_every_damage
def test_a_damaged_event_log_changes_no_event(origin: Path, damage: str) -> None:
    """They are a copy of the journal, which only people and a rebuild of the database read."""
    whole = STORE_KINDS["files"].open(origin)
    expected = whole.events("runs")
    whole.close()
    for at, place, _spoilt in damaged(origin, "jobs/runs.events.log", damage, stride=11):
        store = FILES.open(place)
        assert (statuses(store), store.events("runs")) == (WHOLE, expected), at
        store.close()
        rebuild(str(FILES.path(place)), SystemClock(), 10.0)
        store = FILES.open(place)
        numbers = [number for event in store.events("runs") for number in _numbers(event)]
        assert (statuses(store), numbers) == (WHOLE, [1]), at
        check_files(FILES, place, store)
        store.close()


def _numbers(event: dict[str, Any]) -> list[int]:
    return list(range(event["seq"], event.get("upto", event["seq"]) + 1))


@with_every_damage
def test_the_database_of_a_files_store(origin: Path, damage: str) -> None:
    """The database is right, or one line names the verb that makes it again, and that verb succeeds."""
    _settle(origin / "jobs/.store/registry.db")
    told = 0
    for at, place, _spoilt in _spoilt_database(origin, damage):
        path = str(FILES.path(place))
        try:
            store = FILES.open(place)
            try:
                assert statuses(store) == WHOLE
                _works_on(store)
            finally:
                store.close()
        except MamError as error:
            told += 1
            _check_advice(error, at)
        rebuilt = rebuild(path, SystemClock(), 10.0)
        store = FILES.open(place)
        assert {name: status for name, status in statuses(store).items() if name in WHOLE} == WHOLE, at
        assert rebuilt.kept is not None
        check_files(FILES, place, store)
        store.close()
    assert told > 10


def _check_advice(error: MamError, at: int) -> None:
    assert error.exit_code == 9, f"byte {at}: {error}"
    assert "\n" not in str(error), f"byte {at}: {error}"
    assert "`mam rebuild`" in str(error) or at in MARKS, f"byte {at}: {error}"


MARKS = range(60, 72)
"""Of a database: the version of its schema, and whose it is. With others it is another program's, or a newer mam's."""


def _spoilt_database(origin: Path, damage: str) -> Iterator[tuple[int, Path, bytes]]:
    """A bit inside a cell is a limit: SQLite has no checksum there, see docs/guarantees.md."""
    stride, upto = (3, 100) if damage == "turned over" else (2999, 1 << 30)
    return damaged(origin, "jobs/.store/registry.db", damage, stride, upto)


def _settle(database: Path) -> None:
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


@with_every_damage
@pytest.mark.parametrize("file", ["ended/events.ndjson", "ended/status.json", "ended/meta.json", ".cursor-*"])
def test_a_damaged_audit_log_keeps_its_other_lines(
    origin: Path, damage: str, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = str(next((origin / "logs").glob(file)).relative_to(origin))
    for at, place, spoilt in damaged(origin, name, damage, stride=61):
        store = FILES.open(place)
        registry = Registry(store, AuditLog(str(place / "logs")))
        registry.publish("runs", event="progress", attempt=1)
        found, whole = history_in_log(place / "logs"), history_in(store)
        assert (found["runs"], found["waits"]) == (whole["runs"], whole["waits"]), at
        if name.endswith("events.ndjson"):
            assert all(line in (place / name).read_bytes() for line in spoilt.split(b"\n")), "a line was discarded"
            if damage == "turned over" and found["ended"] != whole["ended"]:
                assert "events.ndjson: line" in caplog.text
        store.close()


@with_every_damage
def test_a_damaged_database_is_right_or_named(folder: Path, damage: str) -> None:
    """The database opens and is right, or mam names the damage. mam never makes a new one over it."""
    origin = folder / "database"
    SQLITE.make(origin)
    store = SQLITE.open(origin)
    _fill(Registry(store))
    store.close()
    _settle(origin / "jobs.db")
    for at, place, spoilt in damaged(origin, "jobs.db", damage, stride=2999):
        try:
            store = SQLITE.open(place)
            jobs = [store.get(job_id) for job_id in ("ended", "runs", "waits")]
            assert [job.job_id for job in jobs] == ["ended", "runs", "waits"]
            list(store.select(Query()))
            store.close()
        except MamError as error:
            assert "jobs.db" in str(error) or "ended" in str(error) or "runs" in str(error), f"byte {at}: {error}"  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
        assert (place / "jobs.db").stat().st_size >= len(spoilt)
        shutil.rmtree(place)


def _works_on(store: Store) -> None:
    assert Registry(store).register(prompt="next", agent="codex", label="others").created
