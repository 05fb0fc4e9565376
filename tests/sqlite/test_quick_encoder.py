"""A process that stays encodes the ends of its jobs by another library; nobody else loads it, and nobody needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mam.registry import Registry
from mam.stores.sql.encoding import ended_texts
from mam.stores.sqlite.store import QUICK_AFTER, SqliteStore, _ended_texts, create_sqlite_store
from mam.testing.conformance.base import check_journal

LOADED = """
import sys
from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore
registry = Registry(SqliteStore(sys.argv[1]))
for job_id in sys.argv[2:]:
    registry.complete(job_id)
print("orjson" in sys.modules)
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    path = str(tmp_path / "jobs.db")
    create_sqlite_store(path)
    return path


def end(store: SqliteStore, count: int) -> None:
    registry = Registry(store)
    for _ in range(count):
        registry.register(prompt="p", agent="a")
        job = registry.pick("a", owner="me")
        assert job is not None
        registry.complete(job.job_id, attempt=1, result="ä \x1f \u2028")
    check_journal(store)


def test_it_is_used_once_many_jobs_have_ended(place: str) -> None:
    store = SqliteStore(place)
    end(store, QUICK_AFTER - 1)
    assert store._texts_of_end is _ended_texts
    end(store, 2)
    assert store._texts_of_end is ended_texts


def test_without_it_everything_goes_on(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mam.stores.sql.encoding")
    monkeypatch.setitem(sys.modules, "orjson", None)
    store = SqliteStore(place)
    end(store, QUICK_AFTER + 1)
    assert store._texts_of_end is _ended_texts


def test_who_ends_few_does_not_load_it(place: str) -> None:
    registry = Registry(SqliteStore(place))
    ids = [registry.register(prompt="p", agent="a").job.job_id for _ in range(3)]
    ran = subprocess.run([sys.executable, "-c", LOADED, place, *ids], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
