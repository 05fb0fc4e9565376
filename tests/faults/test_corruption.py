"""Any byte of any file cut off or turned over: told by name, the others readable, nothing thrown away."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mam.audit.mirror import AuditLog
from mam.errors import BadRecord, MamError
from mam.registry import Registry
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from tests.audit.support import history_in, history_in_log
from tests.faults.damaging import damaged, with_every_damage
from tests.faults.homes import HOMES, copied

if TYPE_CHECKING:
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

FILES, SQLITE = HOMES["files"], HOMES["sqlite"]


@pytest.fixture
def origin(folder: Path) -> Path:
    """One job that has ended, one that runs, one that waits; with an audit log."""
    place = folder / "origin"
    FILES.make(place)
    store = FILES.open(place)
    _fill(Registry(store, AuditLog(str(place / "logs"))))
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
def test_a_record(origin: Path, damage: str) -> None:
    """Where the damage leaves a sound record, it is somebody else's write like any other."""
    told = 0
    for at, place, spoilt in damaged(origin, "jobs/ended.json", damage, stride=19):
        store = FILES.open(place)
        seen = statuses(store)
        assert {name: seen[name] for name in ("runs", "waits")} == {"runs": "running", "waits": "pending"}
        try:
            assert store.get("ended").job_id == "ended"
        except BadRecord as bad:
            told += 1
            assert "ended.json" in str(bad)  # noqa: PT017
            assert [problem.file for problem in store.problems()] == ["ended.json"], at
            assert (place / "jobs/ended.json").read_bytes() == spoilt, "it was not left as it is"
        _works_on(store)
        store.close()
    assert told > 10


@pytest.mark.parametrize("index", ["there", "gone"])
@with_every_damage
def test_the_journal(origin: Path, damage: str, index: str) -> None:
    """The records are whole and stay so. What is lost of the history is told, and what is left of it is kept."""
    for at, place, spoilt in damaged(origin, "jobs/.store/journal.log", damage, stride=59):
        if index == "gone":
            for file in (place / "jobs/.store").glob("index.sqlite*"):
                file.unlink()
        store = FILES.open(place)
        try:
            assert statuses(store) == WHOLE, at
            told = [problem.file for problem in store.problems()]
            list(store.entries(None))
            told += [problem.file for problem in store.problems()]
            _works_on(store)
        except MamError as error:
            told = [str(error)]
        assert any("journal" in name for name in told) or _is_beyond_knowing(spoilt, place, damage, index), (
            f"byte {at}: {told}"
        )
        assert _kept(place, spoilt), f"byte {at}: something was thrown away"
        store.close()


def _is_beyond_knowing(spoilt: bytes, place: Path, damage: str, index: str) -> bool:
    """Without an index nobody can know what was there: a journal that ends with a whole line, or has none, looks like
    one that was never longer, and a last line without its end like one that was never acknowledged."""
    if index == "there":
        return False
    if damage == "cut off" and (not spoilt or spoilt.endswith(b"\n")):
        return True
    return not spoilt.endswith(b"\n") and any((place / "jobs/.store/quarantine").glob("*"))


def _kept(place: Path, spoilt: bytes) -> bool:
    """Every line that was there is there still, in a segment or put aside."""
    hidden = place / "jobs/.store"
    left = b"\n".join(file.read_bytes() for file in sorted(hidden.rglob("*journal*")) if file.is_file())
    return all(line in left for line in spoilt.split(b"\n"))


@with_every_damage
def test_the_index(origin: Path, damage: str) -> None:
    """It is made anew. A bit inside a cell is a limit: SQLite has no checksum there, see docs/guarantees.md."""
    _settle(origin / "jobs/.store/index.sqlite")
    stride, upto = (3, 100) if damage == "turned over" else (1999, 1 << 30)
    for _at, place, _spoilt in damaged(origin, "jobs/.store/index.sqlite", damage, stride, upto):
        store = FILES.open(place)
        assert statuses(store) == WHOLE
        _works_on(store)
        store.close()


def _settle(database: Path) -> None:
    import apsw

    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


@with_every_damage
def test_the_events_of_a_job(origin: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    """They are a copy of the journal. A log that lacks some is told by file and line, made anew, and kept."""
    name = "runs.events.log"
    whole = _events(origin, "runs")
    told = 0
    for at, place, spoilt in damaged(origin, f"jobs/{name}", damage, stride=7):
        caplog.clear()
        store = FILES.open(place)
        assert isinstance(store, FilesStore)
        differing = store.compare_events()
        found = store.events("runs")
        if _numbers(found) != [event["seq"] for event in whole] or (caplog.text and found != whole):
            raise AssertionError(f"byte {at}: {found}")
        if name in caplog.text:
            told += 1
            assert f"{name}: line " in caplog.text or f"{name}: it " in caplog.text
            assert [problem.file for problem in store.problems()] == [name], at
            assert [file.read_bytes() for file in (place / "jobs/.store/quarantine").iterdir()] == [spoilt], at
            assert (place / "jobs" / name).read_bytes() == (origin / "jobs" / name).read_bytes()
        else:
            assert found == whole or [problem.file for problem in differing] == [name], at
        store.mend_events("runs")
        assert (store.events("runs"), store.compare_events()) == (whole, [])
        assert (statuses(store), store.events("ended")) == (WHOLE, _events(origin, "ended"))
        _works_on(store)
        store.close()
    assert told > 3


def _events(origin: Path, job_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (origin / f"jobs/{job_id}.events.log").read_bytes().splitlines()]


def _numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["seq"] for event in events]


def test_events_that_the_journal_has_lost_too_are_told_and_left_as_they_are(
    origin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = origin / "jobs/runs.events.log"
    log.write_bytes(b"\x00\n")
    journal = origin / "jobs/.store/journal.log"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(
        b"".join(b"x" + line[1:] if b'"published"' in line and b'"runs"' in line else line for line in lines)
    )
    store = FILES.open(origin)
    assert store.events("runs") == []
    assert "runs.events.log: line 1 cannot be read; the journal does not have" in caplog.text
    assert "runs.events.log" in [problem.file for problem in store.problems()]
    assert log.read_bytes() == b"\x00\n"
    store.close()


def test_a_damaged_event_log_is_archived_whole(origin: Path) -> None:
    whole = _events(origin, "ended")
    (origin / "jobs/ended.events.log").write_bytes(b"")
    store = FILES.open(origin)
    assert store.archive(["ended"]) == ["ended"]
    kept = store.archived("ended")
    assert kept is not None
    assert kept.events == whole
    store.close()


@with_every_damage
@pytest.mark.parametrize("file", ["ended/events.ndjson", "ended/status.json", "ended/meta.json", ".cursor-*"])
def test_the_audit_log(origin: Path, damage: str, file: str, caplog: pytest.LogCaptureFixture) -> None:
    name = str(next((origin / "logs").glob(file)).relative_to(origin))
    for at, place, spoilt in damaged(origin, name, damage, stride=61):
        store = FILES.open(place)
        registry = Registry(store, AuditLog(str(place / "logs")))
        registry.publish("runs", event="progress", attempt=1)
        found, whole = history_in_log(place / "logs"), history_in(store)
        assert (found["runs"], found["waits"]) == (whole["runs"], whole["waits"]), at
        if name.endswith("events.ndjson"):
            assert all(line in (place / name).read_bytes() for line in spoilt.split(b"\n")), "a line was thrown away"
            if damage == "turned over" and found["ended"] != whole["ended"]:
                assert "events.ndjson: line" in caplog.text
        store.close()


@with_every_damage
def test_a_database(folder: Path, damage: str) -> None:
    """It opens and is right, or it is told by name; it is never made anew over what is there."""
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


def test_a_journal_cut_between_two_frames_takes_no_record_back(origin: Path) -> None:
    """The last frame that is left is not the last act: to carry it out again would undo what came after it."""
    journal = origin / "jobs/.store/journal.log"
    lines = journal.read_bytes().splitlines(keepends=True)
    for file in (origin / "jobs/.store").glob("index.sqlite*"):
        file.unlink()
    for left in range(1, len(lines)):
        copied(origin, origin.parent / "wreck")
        (origin.parent / "wreck/jobs/.store/journal.log").write_bytes(b"".join(lines[:left]))
        store = FILES.open(origin.parent / "wreck")
        assert statuses(store) == WHOLE, left
        assert store.get("ended").result == "r"
        store.close()
