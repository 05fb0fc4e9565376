"""An audit log of mam 0.1.0 beside a store that was brought up to date: it starts over, and no line comes twice."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.files.store import FilesStore
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.audit.support import history_lines
from tests.sqlite.test_upgrade import old_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.port import Store

HERE = Path(__file__).parent
LOGS: dict[str, dict[str, str]] = json.loads((HERE / "version_0_1_0.json").read_bytes())
"""Written by the code of mam 0.1.0 for the old stores that the tests keep; without meta.json and status.json."""


@pytest.fixture(params=["files", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Iterator[Store]:
    opened: Store
    if kind == "files":
        shutil.copytree(HERE.parent / "files" / "version_0_1_0", tmp_path / "jobs")
        opened = FilesStore(str(tmp_path / "jobs"))
    else:
        old_database(tmp_path / "old.db")
        create_sqlite_store(str(tmp_path / "old.db"))
        opened = SqliteStore(str(tmp_path / "old.db"))
    yield opened
    opened.close()


@pytest.fixture
def old_log(kind: str, logs_dir: Path) -> Path:
    for name, text in LOGS[kind].items():
        (logs_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (logs_dir / name).write_text(text, encoding="utf-8")
    return logs_dir


def told(logs_dir: Path) -> Counter[str]:
    """Every line of every job but for the name of its entry, which tells the journals apart."""
    jobs = [path.name for path in logs_dir.iterdir() if path.is_dir()]
    lines = [{**line, "job": job_id} for job_id in jobs for line in history_lines(logs_dir, job_id)]
    return Counter(json.dumps({**line, "entry": None}, sort_keys=True) for line in lines)


def test_no_line_comes_twice_and_none_is_lost(store: Store, old_log: Path, kind: str) -> None:
    before = told(old_log)

    AuditLog(str(old_log)).catch_up(store)

    after = told(old_log)
    assert before <= after
    assert set(after.values()) == {1}
    new = [json.loads(line)["event"] for line in after - before]
    # A files store begins a new journal: each job gets one line that tells so.
    assert new == ([] if kind == "sqlite" else ["migrated"] * 16)


def test_lines_under_the_names_of_another_journal_are_known(store: Store, old_log: Path, kind: str) -> None:
    """A PostgreSQL store that was brought up to date numbers its journal anew and gives it another id."""
    if kind == "files":
        pytest.skip("a files store begins its journal anew by itself")
    for path in old_log.glob("*/events.ndjson"):
        path.write_text(path.read_text().replace(store.journal_id, "an-older-journal"), encoding="utf-8")
    (old_log / f".cursor-{store.journal_id}").rename(old_log / ".cursor-an-older-journal")
    before = told(old_log)

    AuditLog(str(old_log)).catch_up(store)
    assert told(old_log) == before

    Registry(store, AuditLog(str(old_log))).publish("running0", event="progress", detail="new")
    assert (told(old_log) - before).total() == 1


def test_later_events_are_added_once(store: Store, old_log: Path) -> None:
    registry = Registry(store, AuditLog(str(old_log)))
    registry.publish("running0", event="progress", detail="after the upgrade")
    AuditLog(str(old_log)).catch_up(store)

    details = [line["payload"]["detail"] for line in history_lines(old_log, "running0") if line["event"] == "published"]
    assert details.count("after the upgrade") == 1
    assert len(details) == len(set(details))
