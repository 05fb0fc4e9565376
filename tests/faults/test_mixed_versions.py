"""mam 0.1.0 has a store open while this mam takes it over and is killed: mam rejects the old one, or its acts count."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.util.strict_json import strict_json
from tests.faults.amount import DOSE
from tests.faults.invariants import check_no_problems
from tests.faults.killing import at_calls, at_writes, kill_at, kill_points
from tests.files.test_upgrade import old_store
from tests.sqlite.test_upgrade import old_database
from tests.upgrades import STATUSES, check_everything_is_there, check_replay

if TYPE_CHECKING:
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

ROOT = Path(__file__).resolve().parents[2]
VERSION_0_1_0 = "8f310e93d4597a2457ac60822d1daf3d014c1112"
"""The commit that the tag v0.1.0 names; a clone need not have the tag."""
MOMENTS = 12 * DOSE
NEWEST_FORMAT_OF_0_1_0 = 1


def format_of(journal: Path) -> int:
    """As mam 0.1.0 reads the first line of its journal; it refuses a higher one than it writes, and looks at the inode
    before each act."""
    line = journal.read_bytes().partition(b"\n")[0]
    body = line[9:]
    assert int(line[:8], 16) == crc32(body)
    found = strict_json(body)
    assert isinstance(found, dict)
    return int(found["format"])


def test_nothing_is_changed_before_mam_0_1_0_is_kept_out(folder: Path) -> None:
    """After a kill at any call, the old journal and the records are unchanged, or mam 0.1.0 refuses the journal."""
    path = folder / "jobs"

    def work(acknowledge: Callable[[str], None]) -> None:
        FilesStore(str(path)).close()
        acknowledge("done")

    def records() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file() and file.name[0] != "."}

    old_store(path)
    before, inode = records(), (path / ".store/journal.log").stat().st_ino
    journal = (path / ".store/journal.log").read_bytes()
    states = set()
    for step, _acknowledged in kill_points(at_calls, work):
        is_out = (path / ".store/journal.log").stat().st_ino != inode
        states.add(is_out)
        if is_out:
            assert format_of(path / ".store/journal.log") > NEWEST_FORMAT_OF_0_1_0, step
        else:
            assert (path / ".store/journal.log").read_bytes() == journal, step
            assert records() == before, f"step {step}: mam 0.1.0 still writes here"
            assert not (path / ".store/registry.db").exists(), step
        shutil.rmtree(path)
        old_store(path)
        inode = (path / ".store/journal.log").stat().st_ino
    assert states == {False, True}


def test_a_database_finished_before_the_old_mam_was_locked_out_is_rebuilt(folder: Path) -> None:
    """mam 0.1.0 may have written since then."""
    path = folder / "jobs"

    def work(acknowledge: Callable[[str], None]) -> None:
        FilesStore(str(path)).close()
        acknowledge("done")

    old_store(path)
    journal = (path / ".store/journal.log").read_bytes()
    tried = 0
    for step, _acknowledged in kill_points(at_calls, work):
        if (path / ".store/journal.log").read_bytes() == journal and (path / ".store/registry.db.whole").exists():
            tried += 1
            late = (path / "pending0.json").read_text(encoding="utf-8").replace("pending0", "late0000")
            (path / "late0000.json").write_text(late, encoding="utf-8")
            store = FilesStore(str(path))
            assert {job.job_id for job in store.select(Query())} == {*STATUSES, "late0000"}, step
            store.close()
        shutil.rmtree(path)
        old_store(path)
    assert tried > 0


# -- with the code of that version -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of that version; a copy of the project without its history cannot have it."""
    place = tmp_path_factory.mktemp("old")
    asked = subprocess.run(["git", "archive", VERSION_0_1_0, "src"], cwd=ROOT, capture_output=True, check=False)
    if asked.returncode != 0:
        pytest.skip(f"MAM 0.1.0 WAS NOT TRIED: git has no commit {VERSION_0_1_0[:8]} here")
    subprocess.run(["tar", "-x", "-C", str(place)], input=asked.stdout, check=True)
    return place / "src"


class OldProcess:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def act(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write("act\n")
        self._process.stdin.flush()
        return self.hear()


@contextmanager
def old_process(old_code: Path, kind: str, path: Path) -> Iterator[OldProcess]:
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tests/faults/old_mam.py"), kind, str(path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(old_code)},
    ) as process:  # fmt: skip
        try:
            one = OldProcess(process)
            assert one.hear() == "ready"
            yield one
        finally:
            process.kill()


class OldStoreKind:
    """A kind of store of mam 0.1.0: how the test makes it, takes it over and opens it."""

    def __init__(self, name: str) -> None:
        self.is_files = name == "files"
        self.seam = at_calls if self.is_files else at_writes

    def make(self, path: Path) -> None:
        (old_store if self.is_files else old_database)(path)

    def open(self, path: Path) -> Store:
        if self.is_files:
            return FilesStore(str(path))
        create_sqlite_store(str(path))
        return SqliteStore(str(path))


def steps_of(kind: OldStoreKind, folder: Path) -> int:
    path = folder / "counted"
    kind.make(path)
    upto = 1
    while kill_at(kind.seam, lambda _word: kind.open(path).close(), upto)[1]:
        upto *= 2
        _cleared(path)
        kind.make(path)
    _cleared(path)
    return upto


def _cleared(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


@pytest.mark.parametrize("name", ["files", "sqlite"])
def test_a_mam_0_1_0_that_has_the_store_open_does_no_harm(folder: Path, old_code: Path, name: str) -> None:
    kind, path = OldStoreKind(name), folder / "store"
    steps = steps_of(kind, folder)
    answers = []
    for moment in range(MOMENTS):
        kind.make(path)
        with old_process(old_code, name, path) as old:
            step = 1 + moment * steps // MOMENTS
            kill_at(kind.seam, lambda _word: kind.open(path).close(), step)
            answers.append(old.act())
            _check(kind.open(path), done=answers[-1] == "done", where=f"step {step}: {answers[-1]}")
            again = old.act()
            assert not again.startswith("done"), f"step {step}: it still writes here"
            _check(kind.open(path), done=answers[-1] == "done", where=f"step {step}: {answers[-1]}, then {again}")
        _cleared(path)
    assert any(answer == "done" for answer in answers), answers
    assert any(answer.startswith("refused 9") for answer in answers), answers


def _check(store: Store, *, done: bool, where: str) -> None:
    """Every job exists once, with its number, and every act that mam 0.1.0 acknowledged."""
    try:
        jobs = {job.job_id: job for job in store.select(Query())}
        late = {"late0000"} if done else set()
        assert jobs.keys() - STATUSES.keys() == late, where
        assert STATUSES.keys() <= jobs.keys(), where
        numbers = [job.number for job in jobs.values()]
        assert len(set(numbers)) == len(numbers), where
        events = [event.get("event") for event in store.events("running0")]
        assert events == ["progress"] * (2 if done else 1), f"{where}: {events}"
        assert [job.job_id for job in jobs.values() if job.exclusive == "repo" and job.status == "running"] == [
            "holder00"
        ]
        check_replay(store)
        check_no_problems(store)
        if not done:
            check_everything_is_there(store)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error
    finally:
        store.close()
