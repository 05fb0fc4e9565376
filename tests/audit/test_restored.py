"""A registry is restored from a backup: the same journal with another end. The log follows it without repeats."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from mam.audit import cursor
from mam.audit import fetch as fetching
from mam.audit.append import copy
from mam.audit.fetch import fetch
from mam.audit.lock import AuditLogLock
from mam.audit.log import read_status
from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.audit.support import Memory, history_in, history_in_log, history_lines
from tests.faults.killing import at_calls, kill_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mam.stores.port import Entry, Store


class Place:
    """A registry on disk that can be copied away and brought back, as a person does it: with nothing open."""

    def __init__(self, folder: Path, kind: str, logs_dir: Path) -> None:
        self.folder, self.kind, self.logs_dir = folder, kind, logs_dir
        folder.mkdir(mode=0o700)
        if kind == "files":
            create_files_store(str(folder))
        else:
            create_sqlite_store(str(folder / "jobs.db"))
        self.open()

    def open(self) -> None:
        self.store: Store = (
            FilesStore(str(self.folder)) if self.kind == "files" else SqliteStore(str(self.folder / "jobs.db"))
        )
        self.registry = Registry(self.store, AuditLog(str(self.logs_dir)))

    def back_up(self, name: str) -> None:
        self.store.close()
        shutil.copytree(self.folder, self.folder.with_name(name))
        self.open()

    def restore(self, name: str) -> None:
        self.store.close()
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.with_name(name), self.folder)
        self.open()


@pytest.fixture(params=["files", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path, logs_dir: Path) -> Iterator[Place]:
    made = Place(tmp_path / "registry", request.param, logs_dir)
    yield made
    made.store.close()


def fork(store: Memory) -> Memory:
    """What a backup of this moment becomes when it is brought back."""
    other = Memory(store.journal_id)
    other._jobs, other._entries = dict(store._jobs), list(store._entries)
    return other


def tell(registry: Registry, job_id: str, *details: str) -> None:
    for detail in details:
        registry.publish(job_id, event="progress", detail=detail)


def details_in(logs_dir: Path, job_id: str) -> list[str]:
    return [line["payload"]["detail"] for line in history_lines(logs_dir, job_id) if line["event"] == "published"]


def assert_told_once(logs_dir: Path, store: Store) -> None:
    """The log may hold more than the journal: what was undone by the restoring had happened all the same."""
    logged = history_in_log(logs_dir)
    for job_id, lines in history_in(store).items():
        counts = Counter(map(repr, logged[job_id]))
        assert set(counts.values()) == {1}, job_id
        assert {repr(line) for line in lines} <= counts.keys(), job_id


def test_new_jobs_of_a_restored_registry_are_in_the_log(place: Place, logs_dir: Path) -> None:
    old = place.registry.register(prompt="one", agent="a").job.job_id
    place.back_up("backup")
    tell(place.registry, old, "1", "2", "3")
    place.restore("backup")
    new = place.registry.register(prompt="two", agent="a").job.job_id
    place.registry.complete(new)
    assert history_in_log(logs_dir)[new] == history_in(place.store)[new]
    assert read_status(str(logs_dir), new) == "completed"
    assert details_in(logs_dir, old) == ["1", "2", "3"]
    assert_told_once(logs_dir, place.store)


def test_the_same_entry_may_be_another_act(place: Place, logs_dir: Path) -> None:
    job = place.registry.register(prompt="one", agent="a").job.job_id
    tell(place.registry, job, "before")
    place.back_up("backup")
    tell(place.registry, job, "1", "2", "3")
    place.restore("backup")
    tell(place.registry, job, "one", "two")
    assert details_in(logs_dir, job) == ["before", "1", "2", "3", "one", "two"]
    tell(place.registry, job, "three", "four", "five")
    assert details_in(logs_dir, job)[-5:] == ["one", "two", "three", "four", "five"]
    assert_told_once(logs_dir, place.store)


def test_as_many_acts_as_were_undone_do_not_hide_it(place: Place, logs_dir: Path) -> None:
    """The journal ends with the same number as before, and no process has read it meanwhile."""
    job = place.registry.register(prompt="one", agent="a").job.job_id
    place.back_up("backup")
    tell(place.registry, job, "1", "2", "3")
    place.restore("backup")
    tell(Registry(place.store), job, "a", "b", "c")
    AuditLog(str(logs_dir)).catch_up(place.store)
    assert details_in(logs_dir, job) == ["1", "2", "3", "a", "b", "c"]


def test_the_status_is_that_of_the_restored_registry(place: Place, logs_dir: Path) -> None:
    job = place.registry.register(prompt="one", agent="a").job.job_id
    place.back_up("backup")
    tell(place.registry, job, "1", "2", "3")
    place.registry.complete(job)
    assert read_status(str(logs_dir), job) == "completed"
    place.restore("backup")
    AuditLog(str(logs_dir)).catch_up(place.store)
    assert read_status(str(logs_dir), job) == "pending"
    place.registry.pick("a", owner="me")
    assert read_status(str(logs_dir), job) == "running"
    assert_told_once(logs_dir, place.store)


def test_an_older_and_then_a_newer_backup_repeat_no_line(place: Place, logs_dir: Path) -> None:
    """An older backup, then a newer one, whose lines are in the log already."""
    job = place.registry.register(prompt="one", agent="a").job.job_id
    place.back_up("older")
    tell(place.registry, job, "1", "2", "3", "4", "5")
    place.back_up("newer")
    place.restore("older")
    tell(place.registry, job, "a", "b")
    place.restore("newer")
    tell(place.registry, job, "6")
    assert details_in(logs_dir, job) == ["1", "2", "3", "4", "5", "a", "b", "6"]


def test_it_is_noticed_after_a_restart_of_the_machine(
    place: Place, logs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place that the copy goes back to then is behind the end of the restored journal, too."""
    monkeypatch.setattr(cursor, "SETTLED_SECONDS", 0.0)
    job = place.registry.register(prompt="one", agent="a").job.job_id
    place.back_up("backup")
    tell(place.registry, job, *map(str, range(9)))
    place.restore("backup")
    monkeypatch.setattr(cursor, "boot_id", lambda: "another-boot")
    tell(place.registry, job, "a", "b")
    assert details_in(logs_dir, job) == [*map(str, range(9)), "a", "b"]


def test_a_restored_store_without_any_act_is_followed_as_well(place: Place, logs_dir: Path) -> None:
    place.back_up("empty")
    old = place.registry.register(prompt="one", agent="a").job.job_id
    place.restore("empty")
    AuditLog(str(logs_dir)).catch_up(place.store)
    new = place.registry.register(prompt="two", agent="a").job.job_id
    assert history_in_log(logs_dir).keys() == {old, new}


def test_a_long_journal_is_read_again_in_several_acts(
    logs_dir: Path, store: Memory, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = registry.register(prompt="p", agent="a").job.job_id
    tell(registry, job, "1", "2", "3")
    restored = fork(store)
    tell(registry, job, "4", "5")
    monkeypatch.setattr(fetching, "ENTRIES_AT_ONCE", 2)
    follower = Registry(restored, AuditLog(str(logs_dir)))
    tell(follower, job, "a", "b", "c", "d", "e")
    AuditLog(str(logs_dir)).catch_up(restored)
    assert details_in(logs_dir, job) == ["1", "2", "3", "4", "5", "a", "b", "c", "d", "e"]


def test_a_history_that_was_broken_meanwhile_is_caught_up(logs_dir: Path, store: Memory, registry: Registry) -> None:
    """Where its gap began says nothing about the restored journal."""
    job = registry.register(prompt="p", agent="a").job.job_id
    restored = fork(store)
    tell(registry, job, "1")
    (logs_dir / job).rename(logs_dir / ".aside")
    (logs_dir / job).write_text("in the way")
    tell(registry, job, "2", "3")
    follower = Registry(restored, AuditLog(str(logs_dir)))
    tell(follower, job, "a")
    (logs_dir / job).unlink()
    (logs_dir / ".aside").rename(logs_dir / job)
    tell(follower, job, "b")
    assert details_in(logs_dir, job) == ["1", "a", "b"]
    assert_told_once(logs_dir, restored)


def test_a_history_repaired_late_is_not_printed_twice(logs_dir: Path, store: Memory, registry: Registry) -> None:
    """Back to an older backup and then to a newer one, and only then can the history be written again."""
    job = registry.register(prompt="p", agent="a").job.job_id
    older = fork(store)
    tell(registry, job, "1", "2", "3", "4")
    newer = fork(store)
    tell(Registry(older, AuditLog(str(logs_dir))), job, "a", "b")
    (logs_dir / job).rename(logs_dir / ".aside")
    (logs_dir / job).write_text("in the way")
    follower = Registry(newer, AuditLog(str(logs_dir)))
    follower.register(prompt="q", agent="a")
    (logs_dir / job).unlink()
    (logs_dir / ".aside").rename(logs_dir / job)
    tell(follower, job, "5")
    assert details_in(logs_dir, job) == ["1", "2", "3", "4", "a", "b", "5"]


def test_killed_while_it_reads_again(logs_dir: Path, store: Memory, registry: Registry, tmp_path: Path) -> None:
    job = registry.register(prompt="p", agent="a").job.job_id
    restored = fork(store)
    tell(registry, job, "1", "2")
    tell(Registry(restored), job, "a", "b")
    new = Registry(restored).register(prompt="q", agent="a").job.job_id
    origin = tmp_path / "origin"
    shutil.copytree(logs_dir, origin)

    def work(_acknowledge: Callable[[str], None]) -> None:
        AuditLog(str(logs_dir)).follow(restored)

    steps = 0
    for _step, _acknowledged in kill_points(at_calls, work):
        steps += 1
        AuditLog(str(logs_dir)).follow(restored)
        assert details_in(logs_dir, job) == ["1", "2", "a", "b"]
        assert history_in_log(logs_dir)[new] == history_in(restored)[new]
        assert read_status(str(logs_dir), job) == "pending"
        shutil.rmtree(logs_dir)
        shutil.copytree(origin, logs_dir)
    assert steps > 10


def test_two_processes_that_notice_a_restore_report_it_once(logs_dir: Path, store: Memory, registry: Registry) -> None:
    job = registry.register(prompt="p", agent="a").job.job_id
    restored = fork(store)
    tell(registry, job, "1", "2")
    tell(Registry(restored), job, "a")
    first = fetch(str(logs_dir), restored)
    tell(Registry(restored), job, "b")
    second = fetch(str(logs_dir), restored)
    assert first.replaced
    assert second.replaced
    with AuditLogLock(str(logs_dir), 0.0) as root:
        for batch in (first, second):
            copy(root, batch, _never)
    assert details_in(logs_dir, job) == ["1", "2", "a", "b"]
    assert not fetch(str(logs_dir), restored).needs_writing
    tell(Registry(restored, AuditLog(str(logs_dir))), job, "c")
    with AuditLogLock(str(logs_dir), 0.0) as root:
        copy(root, second, _never)
        with cursor.Cursor(root, "journal-a") as saved:
            assert str(saved.at.number) == restored.end_offset(), "who noticed it late does not send the others back"
            assert not saved.reads_again
            assert not saved.journal_was_replaced


def test_what_was_read_before_the_restoring_does_not_move_the_copy(
    logs_dir: Path, store: Memory, registry: Registry
) -> None:
    job = registry.register(prompt="p", agent="a").job.job_id
    restored = fork(store)
    tell(registry, job, "1")
    tell(Registry(store), job, "2", "3", "4")
    stale = fetch(str(logs_dir), store)
    follower = Registry(restored, AuditLog(str(logs_dir)))
    tell(follower, job, "a", "b")
    with AuditLogLock(str(logs_dir), 0.0) as root:
        copy(root, stale, _never)
    tell(follower, job, "c", "d", "e")
    assert details_in(logs_dir, job) == ["1", "a", "b", "c", "d", "e"]


def test_a_journal_that_changes_at_every_read_is_abandoned(
    logs_dir: Path, store: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    class Fickle(Memory):
        looks = 0

        def entries(self, cursor: str | None) -> Iterator[Entry]:
            self.looks += 1
            for entry in super().entries(cursor):
                yield entry.replace(lines=tuple({**line, "look": self.looks} for line in entry.lines))

    fickle = Fickle()
    Registry(fickle).register(prompt="p", agent="a")
    AuditLog(str(logs_dir)).catch_up(fickle)
    assert "changes while it is read" in caplog.text


def _never(error: OSError) -> None:
    raise error
