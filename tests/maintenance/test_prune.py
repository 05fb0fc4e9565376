"""`mam prune`: what it counts is what it moves, and the newest job stays and is named."""

from __future__ import annotations

import pytest

from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock
from tests.cli.command import Mam

LONG_AGO_MS = 1_600_000_000_000


def ended_long_ago(mam: Mam, kind: str) -> list[str]:
    """Two jobs; the command goes by a clock that is years ahead of theirs."""
    clock, place = FakeClock(wall_ms=LONG_AGO_MS), str(mam.here / "jobs")
    if kind == "files":
        create_files_store(place)
        store: FilesStore | SqliteStore = FilesStore(place, clock=clock)
    else:
        create_sqlite_store(place)
        store = SqliteStore(place, clock=clock)
    mam.env["MAM_STORE"] = place if kind == "files" else f"sqlite://{place}"
    registry = Registry(store)
    ids = [registry.register(prompt="p", agent="shell").job.job_id for _ in range(2)]
    for job_id in ids:
        registry.cancel(job_id)
    store.close()
    return ids


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_the_newest_job_stays_and_is_named(mam: Mam, kind: str) -> None:
    old, newest = ended_long_ago(mam, kind)
    stays = f"mam: job {newest[:8]} stays: it is the newest, and its number must not be assigned again\n"

    foreseen = mam("prune", "-n")
    assert (foreseen.out, foreseen.stderr) == ("1 cancelled would be moved\n", stays)
    moved = mam("prune")
    assert (moved.out, moved.stderr) == ("1 cancelled moved\n", stays)
    assert [job["job_id"] for job in mam("list", "--archived", "--json").json] == [old]

    for words in (("-n",), ()):
        again = mam("prune", *words)
        assert (again.out, again.stderr) == ("", f"mam: no other job ended more than 30d ago\n{stays}")
    assert mam("prune", "-n", "--json").json == {"dry_run": True, "moved": {}}
    assert mam("prune", "--status", "error").stderr == "mam: no job ended more than 30d ago\n"

    mam.register()
    last = mam("prune")
    assert (last.out, last.stderr) == ("1 cancelled moved\n", "")
