"""A files store of mam 0.1.0 is taken over when it is first opened, and an older mam refuses it afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mam.stores.files.store import FilesStore
from tests.faults.killing import at_calls, kill_points
from tests.upgrades import check_everything_is_there, check_work_goes_on

HERE = Path(__file__).parent


def old_store(path: Path) -> None:
    shutil.copytree(HERE / "version_0_1_0", path)
    path.chmod(0o700)
    for file in path.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    old_store(tmp_path / "jobs")
    return tmp_path / "jobs"


def test_all_jobs_survive_and_work_continues(old: Path) -> None:
    store = FilesStore(str(old))
    check_everything_is_there(store)
    assert store.secrets("extra000") == {"auth_token": "sssecret"}
    assert store.problems() == []
    check_work_goes_on(store)
    assert store.problems() == []
    store.close()


def test_the_old_journal_is_kept_aside_and_one_that_older_versions_refuse_is_in_its_place(old: Path) -> None:
    journal = (old / ".store/journal.log").read_bytes()
    FilesStore(str(old)).close()
    assert b'"format":2' in (old / ".store/journal.log").read_bytes()
    kept = [path.read_bytes() for path in (old / ".store/aside/0.1.0").iterdir() if path.name.startswith("journal.log")]
    assert kept == [journal]
    assert not (old / ".store/archive.sqlite").exists()


def test_killed_at_any_call_it_is_taken_over_the_next_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "jobs"

    def work(acknowledge: Callable[[str], None]) -> None:
        FilesStore(str(path)).close()
        acknowledge("done")

    old_store(path)
    steps = 0
    caplog.set_level("ERROR")
    for _step, _acknowledged in kill_points(at_calls, work):
        steps += 1
        store = FilesStore(str(path))
        check_everything_is_there(store)
        assert store.problems() == []
        store.close()
        shutil.rmtree(path)
        old_store(path)
    assert steps > 50, "the seam no longer reaches the calls"
