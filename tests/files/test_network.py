"""On a network file system: a rollback journal under the lock, and no log that processes share. None can be mounted
here, so the list of mounts is a made-up one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mam.registry import Registry
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from mam.stores.sqlite import file_system as places
from tests.files.conftest import StoreDir, old_record
from tests.files.invariants import check
from tests.sqlite.test_place import mounts

WORKER = """
import sys
from mam.stores.sqlite import file_system
file_system.MOUNTS = sys.argv[2]
from mam.registry import Registry
from mam.stores.files.store import FilesStore
registry = Registry(FilesStore(sys.argv[1], lock_wait_seconds=60))
while (job := registry.pick("codex", owner="me")) is not None:
    registry.complete(job.job_id, attempt=job.attempt)
    print(job.job_id, flush=True)
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = mounts(tmp_path, "nfs4")
    monkeypatch.setattr(places, "MOUNTS", str(file))
    return file


def beside(store_dir: StoreDir) -> set[str]:
    return {path.name for path in (store_dir.path / ".store").iterdir() if path.name.startswith("registry.db-")}


@pytest.mark.usefixtures("network")
def test_there_is_no_log_that_processes_would_share(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.pick("codex", owner="me")
    assert not {name for name in beside(store_dir) if name.endswith(("-wal", "-shm"))}
    database = (store_dir.path / ".store" / "registry.db").read_bytes()
    assert database[18:20] == b"\x01\x01", "the header names a rollback journal"
    other = store_dir.open()
    assert [job.job_id for job in other.select(Query())] == [job_id]
    assert other.complete(job_id).status == "completed"
    check(store_dir, registry)


@pytest.mark.usefixtures("network")
def test_old_records_are_taken_over_there_too(store_dir: StoreDir) -> None:
    store_dir.rename_in("abc12345", old_record("abc12345", last_seq=2))
    registry = store_dir.open()
    assert registry.pick("tmux:claude", owner="me") is not None
    check(store_dir, registry)


def test_several_processes_share_the_work(store_dir: StoreDir, network: Path) -> None:
    registry = store_dir.open()
    ids = {registry.register(prompt="p", agent="codex").job.job_id for _ in range(30)}
    command = [sys.executable, "-c", WORKER, str(store_dir.path), str(network)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    done = [line for worker in workers for line in worker.communicate()[0].split()]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert sorted(done) == sorted(ids)
    check(store_dir, registry)


def test_a_store_moved_to_a_network_disk_keeps_working(store_dir: StoreDir, tmp_path: Path) -> None:
    local = store_dir.open()
    job_id = local.register(prompt="p", agent="codex").job.job_id
    store_dir.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "MOUNTS", str(mounts(tmp_path, "cifs")))
        registry = Registry(FilesStore(str(store_dir.path), store_dir.clock))
        assert registry.complete(job_id).status == "completed"
        assert not {name for name in beside(store_dir) if name.endswith("-wal")}
        check(store_dir, registry)
    assert os.listdir(store_dir.path)
