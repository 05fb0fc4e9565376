"""Databases that were restored, removed or replaced, and copies made while other processes write."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from mam.errors import StoreUnavailable
from mam.jobs.pause import Pause
from mam.registry import Registry
from mam.stores.files.lock import registry_lock
from mam.stores.files.rebuild import rebuild
from mam.stores.files.records import RecordFiles
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore
from mam.util.clock import SystemClock
from tests.faults.invariants import check_files, check_store
from tests.faults.store_kinds import STORE_KINDS, Boot

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(600)  # guards against hanging only, also on a loaded machine

FILES = STORE_KINDS["files"]
BESIDE = ("", "-wal", "-shm")


@pytest.fixture
def place(folder: Path) -> Path:
    place = folder / "place"
    FILES.make(place)
    store = FILES.open(place)
    registry = Registry(store)
    for job_id in ("first", "second"):
        registry.register(prompt="p", agent="codex", job_id=job_id)
    store.close()
    return place


def database(place: Path) -> Path:
    return place / FILES.database


def settle(place: Path) -> None:
    """Moves the content of its log into the database."""
    connection = apsw.Connection(str(database(place)))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def copy_database(origin: Path, target: Path) -> None:
    """Where the copy has no log, the old one must not stay."""
    for suffix in BESIDE:
        target.with_name(target.name + suffix).unlink(missing_ok=True)
        if origin.with_name(origin.name + suffix).exists():
            shutil.copy2(origin.with_name(origin.name + suffix), target.with_name(target.name + suffix))


def work(place: Path) -> None:
    store = FILES.open(place)
    registry = Registry(store)
    job = registry.pick("codex", owner="me")
    assert job is not None
    registry.publish(job.job_id, event="progress", attempt=1)
    registry.register(prompt="p", agent="codex", job_id="later")
    store.close()


def rebuilt(place: Path) -> Store:
    rebuild(str(FILES.path(place)), SystemClock(), 10.0)
    return FILES.open(place)


def with_store(place: Path, act: object) -> None:
    store = FILES.open(place)
    try:
        act(Registry(store))  # type: ignore[operator]
    finally:
        store.close()


def test_an_older_database_beside_newer_files_is_refused_and_rebuilt(place: Path, folder: Path) -> None:
    backup = folder / "backup"
    backup.mkdir()
    with_store(place, lambda registry: registry.store.save_position("another process", "1"))
    copy_database(database(place), backup / "registry.db")
    work(place)
    copy_database(backup / "registry.db", database(place))
    newer = {file.name: file.read_bytes() for file in FILES.path(place).glob("*.json")}
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        with_store(place, lambda registry: registry.pick("codex", owner="me"))
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        with_store(place, lambda registry: registry.get("later"))
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        with_store(place, lambda registry: registry.set_status("first", "cancelled"))
    assert {file.name: file.read_bytes() for file in FILES.path(place).glob("*.json")} == newer, "nothing was changed"
    store = FILES.open(place)
    assert [problem.file for problem in store.problems()] == ["first.json", "later.json"]
    store.close()
    store = rebuilt(place)
    found = {job.job_id: (str(job.status), job.number) for job in store.select(Query())}
    assert found == {"first": ("running", 1), "second": ("pending", 2), "later": ("pending", 3)}
    assert [event["event"] for event in store.events("first")] == ["progress"]
    check_store(FILES, place, store)
    store.close()


def test_an_older_database_is_refused_by_every_act_also_of_a_process_that_has_it_open(
    place: Path, folder: Path
) -> None:
    """The act need not touch a job that changed since: the lock file names the last entry."""
    settle(place)
    backup = folder / "registry.db"
    copy_database(database(place), backup)
    work(place)
    settle(place)
    open_one = FILES.open(place)
    assert open_one.get("later").number == 3
    database(place).write_bytes(backup.read_bytes())  # the same inode
    acts: list[Callable[[Registry], object]] = [
        lambda registry: registry.register(prompt="p", agent="codex", job_id="new"),
        lambda registry: registry.publish("second", event="progress"),
        lambda registry: registry.store.sweep(),
        lambda registry: registry.store.pause(Pause(agent="codex", label=None, until=None, reason="r", made_at="now")),
    ]
    for act in acts:
        with pytest.raises(StoreUnavailable, match=r"ends at entry 2, they at entry 5.*`mam rebuild`"):
            act(Registry(open_one))
        with pytest.raises(StoreUnavailable, match=r"ends at entry 2, they at entry 5.*`mam rebuild`"):
            with_store(place, act)
    assert not (FILES.path(place) / "new.json").exists()
    open_one.close()
    store = rebuilt(place)
    assert str(store.get("first").status) == "running"
    Registry(store).register(prompt="p", agent="codex", job_id="new")  # the new journal is shorter than the old one
    check_store(FILES, place, store)
    store.close()


@pytest.mark.parametrize(
    "text", [b"", b"\0" * 54, b"anything", b"%s 99", b"%s 0000000000000000009x\n", b"%s -0000000000000000099\n"]
)
def test_a_lock_file_that_names_no_entry_refuses_nothing(place: Path, text: bytes) -> None:
    """That of the old scripts, of an earlier mam, or after a power cut."""
    store = FILES.open(place)
    epoch = store.journal_id.encode()
    (FILES.path(place) / ".lock").write_bytes(text.replace(b"%s", epoch))
    Registry(store).register(prompt="p", agent="codex", job_id="new")
    assert (FILES.path(place) / ".lock").read_bytes().startswith(b"%s %020d\n" % (epoch, 3))
    check_store(FILES, place, store)
    store.close()


def test_a_lost_log_of_the_database_is_refused_and_rebuilt(place: Path) -> None:
    """The content of the log was acknowledged, and is in the record files."""
    settle(place)
    work(place)
    for suffix in ("-wal", "-shm"):
        database(place).with_name(f"registry.db{suffix}").unlink()
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        with_store(place, lambda registry: registry.pick("codex", owner="me"))
    store = rebuilt(place)
    assert {job.job_id for job in store.select(Query())} == {"first", "second", "later"}
    assert str(store.get("first").status) == "running"
    check_store(FILES, place, store)
    store.close()


@pytest.mark.parametrize("left", [(), ("-wal", "-shm")], ids=["nothing", "its log"])
def test_a_lost_database_is_refused_and_rebuilt(place: Path, left: tuple[str, ...]) -> None:
    """The log of the lost one is not read into the new one."""
    settle(place)
    work(place)
    store = FILES.open(place)
    before = store.journal_id
    store.close()
    for suffix in BESIDE:
        if suffix not in left:
            database(place).with_name(f"registry.db{suffix}").unlink()
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        FILES.open(place)
    store = rebuilt(place)
    assert store.journal_id != before
    assert {job.job_id: job.number for job in store.select(Query())} == {"first": 1, "second": 2, "later": 3}
    assert str(store.get("first").status) == "running"
    assert [event["event"] for event in store.events("first")] == ["progress"]
    check_store(FILES, place, store)
    store.close()


def test_records_that_claim_the_same_are_rebuilt_with_one_that_has_it(place: Path) -> None:
    """As after a restored backup, when what was registered since was registered again."""
    path = FILES.path(place)
    store = FILES.open(place)
    registry = Registry(store)
    registry.register(prompt="p", agent="codex", job_id="keyed", key="nightly", exclusive="repo", label="keyed")
    assert registry.pick("keyed", owner="me") is not None
    registry.cancel("first")
    registry.retry("first")
    (again,) = {job.job_id for job in store.select(Query())} - {"first", "second", "keyed"}
    store.close()
    for job_id, copy in (("keyed", "keyed2"), (again, "again2")):
        text = (path / f"{job_id}.json").read_text(encoding="utf-8").replace(job_id, copy)
        (path / f"{copy}.json").write_text(text, encoding="utf-8")
    store = rebuilt(place)
    jobs = list(store.select(Query()))
    assert {job.job_id for job in jobs} == {"first", "second", "keyed", "keyed2", again, "again2"}
    assert len([job for job in jobs if job.key == "nightly"]) == 1
    assert len([job for job in jobs if job.retry_of == "first"]) == 1
    assert len([job for job in jobs if job.exclusive == "repo" and job.status == "running"]) == 1
    check_store(FILES, place, store)
    store.close()


@pytest.mark.parametrize("how", ["after a restart", "adopt"])
def test_older_files_beside_a_newer_database_are_written_again(place: Path, folder: Path, how: str) -> None:
    from mam.stores.files.adopt import adopt, foreign_ids

    path, old = FILES.path(place), folder / "old"
    shutil.copytree(path, old)
    work(place)
    for file in [*path.glob("*.json"), *path.glob("*.events.log")]:
        file.unlink()
    for file in [*old.glob("*.json"), old / ".lock"]:
        shutil.copy2(file, path)
    store = FILES.open(place, Boot("another") if how == "after a restart" else None)
    assert isinstance(store, FilesStore)
    assert str(store.get("first").status) == "running"
    if how == "adopt":
        assert {one.outcome for one in adopt(store, foreign_ids(store))} == {"written again", "unchanged"}
    check_files(FILES, place, store)
    store.close()


def test_an_edit_of_another_program_stays_until_it_is_adopted(place: Path) -> None:
    """Other acts and a restart of the machine do not change it. When mam writes the job, it sets the file aside."""
    path = FILES.path(place) / "first.json"
    edit = path.read_bytes().replace(b'"prompt": "p"', b'"prompt": "q"')
    path.write_bytes(edit)
    for boot in ("one", "one", "two"):
        store = FILES.open(place, Boot(boot))
        Registry(store).publish("second", event="progress")
        assert [problem.file for problem in store.problems()] == ["first.json"]
        store.close()
    assert path.read_bytes() == edit
    store = FILES.open(place)
    assert store.get("first").prompt == "p"
    Registry(store).publish("first", event="progress")
    assert [file.read_bytes() for file in (FILES.path(place) / ".store/aside").glob("first.*")] == [edit]
    check_store(FILES, place, store)
    store.close()


@pytest.mark.parametrize("what", ["a directory", "a link", "a full disk"])
def test_an_event_log_that_cannot_be_appended_to_is_whole_after_the_next_act(
    place: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FILES.open(place)
    registry = Registry(store)
    registry.publish("first", event="progress")
    log = FILES.path(place) / "first.events.log"
    if what == "a full disk":
        with monkeypatch.context() as patch:
            patch.setattr(RecordFiles, "append_events", _no_room)
            registry.publish("first", event="progress")
    else:
        log.unlink()
        log.mkdir() if what == "a directory" else log.symlink_to("nowhere")
        registry.publish("first", event="progress")
    registry.publish("second", event="progress")
    check_store(FILES, place, store)
    store.close()


def _no_room(*_given: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_old_file_of_mams_own_moves_no_job_back(place: Path, folder: Path) -> None:
    from mam.stores.files.adopt import adopt

    old = folder / "old.json"
    shutil.copy2(FILES.path(place) / "first.json", old)
    work(place)
    shutil.copy2(old, FILES.path(place) / "first.json")
    store = FILES.open(place)
    assert isinstance(store, FilesStore)
    assert [(one.job_id, one.outcome) for one in adopt(store, ["first"])] == [("first", "unchanged")]
    assert str(store.get("first").status) == "running"
    check_files(FILES, place, store)
    store.close()


def test_the_file_of_an_archived_job_brings_it_not_back(place: Path, folder: Path) -> None:
    """A power cut may undo the removal of the file."""
    from mam.stores.files.adopt import adopt

    saved = folder / "first.json"
    shutil.copy2(FILES.path(place) / "first.json", saved)
    store = FILES.open(place)
    Registry(store).complete("first")
    assert store.archive(["first"]) == ["first"]
    store.close()
    with_store(place, lambda registry: registry.store.save_position("another process", "1"))
    shutil.copy2(saved, FILES.path(place) / "first.json")
    store = FILES.open(place)
    assert isinstance(store, FilesStore)
    assert [(one.job_id, one.outcome) for one in adopt(store, ["first"])] == [("first", "refused")]
    store.close()
    for boot, text in {"two": saved.read_bytes(), "three": b"", "four": bytes(9)}.items():
        (FILES.path(place) / "first.json").write_bytes(text)
        store = FILES.open(place, Boot(boot))
        store.sweep()  # the first act
        check_store(FILES, place, store)
        assert not (FILES.path(place) / "first.json").exists()
        store.close()
    shutil.copy2(saved, FILES.path(place) / "first.json")
    store = rebuilt(place)
    assert {job.job_id for job in store.select(Query())} == {"second"}
    assert store.archived("first") is not None
    store.close()


@pytest.mark.parametrize("how", ["restored", "rebuilt"])
def test_a_process_that_has_the_store_open_writes_into_the_database_that_has_the_name(
    place: Path, folder: Path, how: str
) -> None:
    store = FILES.open(place)
    registry = Registry(store)
    registry.register(prompt="p", agent="codex", job_id="before")
    if how == "rebuilt":
        rebuild(str(FILES.path(place)), SystemClock(), 10.0)
    else:
        copied = folder / "copied"
        shutil.copytree(FILES.path(place), copied)
        os.rename(FILES.path(place), folder / "away")
        os.rename(copied, FILES.path(place))
    registry.register(prompt="p", agent="codex", job_id="after")
    assert registry.pick("codex", owner="me") is not None
    store.close()
    store = FILES.open(place)
    found = {job.job_id: (str(job.status), job.number) for job in store.select(Query())}
    assert found == {
        "first": ("running", 1),
        "second": ("pending", 2),
        "before": ("pending", 3),
        "after": ("pending", 4),
    }
    check_store(FILES, place, store)
    store.close()


def test_a_process_that_has_a_database_open_leaves_it_when_another_gets_its_name(folder: Path) -> None:
    path, other = str(folder / "jobs.db"), str(folder / "other.db")
    STORE_KINDS["sqlite"].make(folder)
    store = SqliteStore(path)
    Registry(store).register(prompt="p", agent="codex", job_id="first")
    store_2 = SqliteStore(path)
    for suffix in BESIDE:
        if os.path.exists(path + suffix):
            shutil.copy2(path + suffix, other + suffix)
    for suffix in BESIDE[::-1]:
        os.rename(other + suffix, path + suffix)
    Registry(store).register(prompt="p", agent="codex", job_id="second")
    store_2.close()
    store.close()
    store = SqliteStore(path)
    assert {job.job_id for job in store.select(Query())} == {"first", "second"}
    store.close()


def test_an_id_in_a_forged_database_leads_to_no_other_directory(place: Path, folder: Path) -> None:
    victim = place / "victim.json"
    text = (FILES.path(place) / "first.json").read_bytes()
    victim.write_bytes(text)
    connection = apsw.Connection(str(database(place)))
    connection.execute("INSERT INTO journal (job, job_id, fields, lines) VALUES (99, '../victim', NULL, '[{}]')")
    connection.close()
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        with_store(place, lambda registry: registry.publish("first", event="progress"))
    assert victim.read_bytes() == text
    store = rebuilt(place)
    check_store(FILES, place, store)
    store.close()


WRITER = """
import sys
from mam.registry import Registry
from mam.stores.files.store import FilesStore
registry = Registry(FilesStore(sys.argv[1]))
number = 0
while True:
    number += 1
    job_id = f"{sys.argv[2]}-{number}"
    registry.register(prompt="x" * 2000, agent="codex", label=sys.argv[2], job_id=job_id)
    job = registry.pick(sys.argv[2], owner="me")
    registry.publish(job.job_id, event="progress", attempt=1)
    print(job_id, flush=True)
"""


def test_a_copy_made_under_the_lock_is_complete(place: Path, folder: Path) -> None:
    """Writers wait, readers never move pages, so what was acknowledged before is in it."""
    path = FILES.path(place)
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("one", "two")]
    copies = []
    try:
        for number in range(12):
            heard = [_last_of(writer) for writer in writers]
            reader = FILES.open(place)
            copy = folder / f"copy-{number}" / "jobs"
            with registry_lock(str(path)):
                copy.parent.mkdir()
                list(reader.select(Query()))
                reader.close()
                subprocess.run(["cp", "-a", str(path), str(copy)], check=True)
            copies.append((copy.parent, heard))
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    for copy, heard in copies:
        store = FILES.open(copy)
        for job_id in heard:
            assert [event["event"] for event in store.events(job_id)] == ["progress"], job_id
        Registry(store).register(prompt="p", agent="codex", job_id="in-the-copy")
        check_store(FILES, copy, store)
        store.close()


def _last_of(writer: subprocess.Popen[str]) -> str:
    assert writer.stdout is not None
    return [writer.stdout.readline().strip() for _ in range(3)][-1]


def test_readers_move_no_page_into_the_database(place: Path) -> None:
    """Checkpoints are made under the lock alone: else a copy made under it could miss what moves meanwhile."""
    before = database(place).read_bytes(), database(place).with_name("registry.db-wal").read_bytes()
    assert before[1], "there is something to move"
    reader = FILES.open(place)
    assert len(list(reader.select(Query()))) == 2
    reader.close()
    assert (database(place).read_bytes(), database(place).with_name("registry.db-wal").read_bytes()) == before
