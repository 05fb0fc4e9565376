"""`mam rebuild` makes the database again from the record files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mam.jobs.pause import Pause
from mam.stores.port import Query
from tests.cli.command import Mam
from tests.faults.killing import at_calls, kill_points
from tests.files.conftest import StoreDir, copied, old_record
from tests.files.invariants import check

if TYPE_CHECKING:
    from mam.stores.port import Store


def filled(store_dir: StoreDir) -> None:
    """Jobs of every kind, an archived one, a pause and a session."""
    registry = store_dir.open()
    archived = registry.register(prompt="archived", agent="codex", key="old").job.job_id
    registry.complete(archived)
    first = registry.register(prompt="first", agent="codex", label="before", key="k", sign=True).job.job_id
    registry.publish(first, event="progress", detail="half")
    registry.next_seq(first)
    registry.register(prompt="later", agent="codex", label="later", after=[first], job_id="later")
    failed = registry.register(prompt="failed", agent="codex", label="failed").job.job_id
    registry.fail(failed, reason="broken")
    registry.retry(failed)
    for job_id in ("held", "next"):
        registry.register(prompt="p", agent="codex", label="gpu", exclusive="gpu", job_id=job_id)
    registry.pick("gpu", owner="me")
    registry.archive([archived])
    registry.pause(Pause(agent="claude-code", reason="limit"))
    registry.announce("agent-1", "generation-1")
    store_dir.close()


def contents(store: Store) -> tuple[Any, ...]:
    found = {job.job_id: job for job in store.select(Query())}
    jobs = {job_id: (job.to_json(), store.events(job_id), store.secrets(job_id)) for job_id, job in found.items()}
    return jobs, list(store.archive_contents()), store.pauses(), store.generations()


def lose(store_dir: StoreDir) -> None:
    for path in (store_dir.path / ".store").glob("registry.db*"):
        path.unlink()


def damage(store_dir: StoreDir) -> None:
    path = store_dir.path / ".store" / "registry.db"
    for beside in (store_dir.path / ".store").glob("registry.db-*"):
        beside.unlink()
    os.truncate(path, 9000)


def empty(store_dir: StoreDir) -> None:
    damage(store_dir)
    os.truncate(store_dir.path / ".store" / "registry.db", 0)


@pytest.mark.parametrize("how", [lose, damage, empty])
def test_a_lost_or_damaged_database_is_rebuilt(store_dir: StoreDir, mam: Mam, how: Callable[[StoreDir], None]) -> None:
    filled(store_dir)
    before = contents(store_dir.open().store)[0]
    store_dir.close()
    how(store_dir)
    for verb in (("list",), ("register", "p", "--agent", "a"), ("pick", "-s", "gpu")):
        mam(*verb, "--store", str(store_dir.path)).failed(9, "`mam rebuild`")
    ran = mam("rebuild", "--json", "--store", str(store_dir.path))
    assert (ran.code, ran.json["jobs"]) == (0, len(before))
    assert {"archived jobs", "pauses", "generations of sessions"} <= set(ran.json["unknown"])
    assert "archived jobs" in ran.stderr
    registry = store_dir.open()
    assert contents(registry.store)[0] == before
    goes_on(store_dir)


def goes_on(store_dir: StoreDir) -> None:
    """Claims, keys, retries and dependencies are as before."""
    registry = store_dir.open()
    held = registry.get("held")
    assert registry.store.holder("gpu") == "held"
    assert registry.pick("gpu", owner="me") is None
    assert registry.complete("held", attempt=held.attempt, claim_id=held.claim_id).status == "completed"
    assert registry.pick("gpu", owner="me") is not None
    first = registry.register(prompt="again", agent="codex", key="k")
    assert not first.created
    assert registry.pick("later", owner="me") is None
    registry.complete(first.job.job_id)
    assert registry.pick("later", owner="me") is not None
    numbers = [job.number for job in registry.select(Query())]
    assert registry.register(prompt="new", agent="codex").job.number > max(numbers)
    check(store_dir, registry)


def test_a_database_that_can_be_read_gives_back_what_only_it_holds(store_dir: StoreDir, mam: Mam) -> None:
    filled(store_dir)
    before = contents(store_dir.open().store)
    store_dir.close()
    ran = mam("rebuild", "--store", str(store_dir.path))
    assert ran.code == 0
    assert "archived jobs" not in ran.stderr
    assert "positions of followers" in ran.stderr
    assert contents(store_dir.open().store) == before
    assert [path.name.startswith("registry.db.") for path in (store_dir.path / ".store/aside").iterdir()] == [True] * 3
    goes_on(store_dir)


def test_a_restored_backup_is_refused_until_it_is_rebuilt(store_dir: StoreDir, mam: Mam, tmp_path: Path) -> None:
    filled(store_dir)
    backup = tmp_path / "backup"
    shutil.copytree(store_dir.path / ".store", backup)
    registry = store_dir.open()
    held = registry.get("held")
    registry.complete("held", attempt=held.attempt)
    new = registry.register(prompt="after the backup", agent="codex").job.job_id
    store_dir.close()
    shutil.rmtree(store_dir.path / ".store")
    shutil.copytree(backup, store_dir.path / ".store")
    store = ("--store", str(store_dir.path))
    late = mam("complete", "held", "--attempt", str(held.attempt), *store)
    late.failed(9, "older than its record files", "mam rebuild")
    assert f"{new}.json: is newer than the registry" in mam("list", *store).stderr
    assert mam("rebuild", *store).code == 0
    registry = store_dir.open()
    assert registry.get("held").status == "completed"
    assert registry.get(new).prompt == "after the backup"
    assert [pause.agent for pause in registry.store.pauses()] == ["claude-code"]
    check(store_dir, registry)


def test_a_job_that_only_the_old_database_has_is_named(store_dir: StoreDir, mam: Mam) -> None:
    filled(store_dir)
    store_dir.file("later").unlink()
    ran = mam("rebuild", "--json", "--store", str(store_dir.path))
    assert (ran.code, ran.json["without_file"]) == (0, ["later"])
    assert "later" in ran.stderr


def test_copies_and_spoilt_records_do_not_stop_it(store_dir: StoreDir, mam: Mam) -> None:
    filled(store_dir)
    for name in [path.name for path in store_dir.path.glob("*.json")]:
        fields = store_dir.fields(name[:-5])
        copy = f"copy-{name[:-5][:8]}"
        store_dir.rename_in(copy, {**fields, "job_id": copy})
    store_dir.rename_in("runs", old_record("runs", status="running"))
    store_dir.file("bad00001").write_text("{")
    lose(store_dir)
    ran = mam("rebuild", "--store", str(store_dir.path))
    assert ran.code == 0
    assert "not read: bad00001.json" in ran.stderr
    registry = store_dir.open()
    numbers = [job.number for job in registry.select(Query())]
    assert len(numbers) == len(set(numbers)) == 13
    assert {job.job_id for job in registry.select(Query()) if job.status == "running"} == {"held", "runs"}
    assert registry.get("runs").lease is not None


def test_killed_at_any_call_nothing_is_lost(tmp_path: Path) -> None:
    from mam.stores.files.rebuild import rebuild

    origin = StoreDir(tmp_path / "origin")
    filled(origin)
    before = contents(origin.open().store)
    origin.close()
    wreck = copied(origin, tmp_path / "wreck")

    def work(acknowledge: Callable[[str], None]) -> None:
        rebuild(str(wreck.path), wreck.clock, 10)
        acknowledge("done")

    steps = 0
    for _step, _acknowledged in kill_points(at_calls, work):
        steps += 1
        registry = wreck.open()
        assert contents(registry.store) == before
        check(wreck, registry)
        wreck.close()
        copied(origin, wreck.path)
    assert steps > 30, "the seam no longer reaches the calls"
