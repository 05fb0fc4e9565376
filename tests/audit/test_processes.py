"""Several processes, threads and stores at one log: every line whole, in order, once."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from typing import TYPE_CHECKING

from mam.audit.lock import AuditLogLock
from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import FilesStore, create_files_store
from mam.testing.races import RacePool
from tests.audit.support import files_registry, history_in, history_in_log, history_lines, raw_lines, status_json

if TYPE_CHECKING:
    from pathlib import Path

    from mam.stores.port import Store
    from mam.testing.races import Report


def open_store(place: str) -> Store:
    create_files_store(place)
    return FilesStore(place)


def live_and_tell(store: Store, _report: Report, *, logs_dir: str, jobs: int) -> None:
    registry = Registry(store, AuditLog(logs_dir))
    for _ in range(jobs):
        registry.register(prompt="p", agent="a")
        job = registry.pick("a", owner="me")
        assert job is not None
        registry.publish(job.job_id, event="progress", detail="half", attempt=job.attempt)
        registry.heartbeat(job.job_id, attempt=job.attempt)
        registry.complete(job.job_id, attempt=job.attempt)


def next_seqs_inside_the_lock(store: Store, _report: Report, *, logs_dir: str, job_id: str) -> None:
    """As an old script does it: several acts under one lock of its own."""
    registry = Registry(store, AuditLog(logs_dir))
    for _ in range(10):
        with registry_lock(store.address):
            registry.next_seq(job_id)
            registry.next_seq(job_id)


def append_local_lines(_store: Store, _report: Report, *, logs_dir: str, job_id: str, name: str, times: int) -> None:
    log = AuditLog(logs_dir)
    for number in range(times):
        log.append_local(job_id, {"event": "received", "by": name, "number": number, "text": "x" * 5000})


def test_concurrent_followers_print_every_line_once(tmp_path: Path, logs_dir: Path) -> None:
    place = str(tmp_path / "jobs")
    with RacePool(partial(open_store, place), processes=True) as pool:
        pool.race([partial(live_and_tell, logs_dir=str(logs_dir), jobs=15)] * 4)
    store = open_store(place)
    AuditLog(str(logs_dir)).catch_up(store)
    assert len(history_in(store)) == 60
    assert history_in_log(logs_dir) == history_in(store)
    assert {status_json(logs_dir, job_id)["status"] for job_id in history_in(store)} == {"completed"}
    store.close()


def test_threads_that_share_one_log_print_every_line_once(tmp_path: Path, logs_dir: Path) -> None:
    store = open_store(str(tmp_path / "jobs"))
    with RacePool(lambda: store, processes=False) as pool:
        pool.race([partial(live_and_tell, logs_dir=str(logs_dir), jobs=10)] * 3)
    AuditLog(str(logs_dir)).catch_up(store)
    assert history_in_log(logs_dir) == history_in(store)
    store.close()


def test_a_script_that_holds_the_registry_does_not_wait_for_the_log(tmp_path: Path, logs_dir: Path) -> None:
    """The holder of the log's lock never waits for the registry's, so the two cannot wait for each other."""
    registry = files_registry(tmp_path / "jobs", logs_dir)
    job = registry.register(prompt="p", agent="a").job
    work = partial(next_seqs_inside_the_lock, logs_dir=str(logs_dir), job_id=job.job_id)
    with RacePool(partial(open_store, str(tmp_path / "jobs")), processes=True) as pool:
        pool.race([work, work, partial(live_and_tell, logs_dir=str(logs_dir), jobs=5)])
    AuditLog(str(logs_dir)).catch_up(registry.store)
    assert history_in_log(logs_dir) == history_in(registry.store)
    assert not os.path.exists(os.path.join(str(registry.store.home), "audit.failures"))
    registry.store.close()


def test_long_lines_of_several_processes_are_not_mixed(tmp_path: Path, logs_dir: Path) -> None:
    """M-24, with lines longer than a page."""
    names = ["first", "second"]
    with RacePool(partial(open_store, str(tmp_path / "jobs")), processes=True) as pool:
        pool.race(
            [partial(append_local_lines, logs_dir=str(logs_dir), job_id="abc", name=name, times=300) for name in names]
        )
    found = list(history_of_local(logs_dir, "abc"))
    assert len(raw_lines(logs_dir, "abc")) == 600
    for name in names:
        assert [number for by, number in found if by == name] == list(range(300))


def history_of_local(logs_dir: Path, job_id: str) -> list[tuple[str, int]]:
    return [(line["by"], line["number"]) for line in history_lines(logs_dir, job_id)]


def test_a_holder_that_is_killed_leaves_no_lock(tmp_path: Path, logs_dir: Path) -> None:
    with RacePool(partial(open_store, str(tmp_path / "jobs")), processes=True) as pool:
        for _ in range(5):
            racer = pool.start(partial(hold_the_lock, logs_dir=str(logs_dir)))
            assert racer.report() == "held"
            racer.kill()
            with AuditLogLock(str(logs_dir), 0.0):
                pass


def hold_the_lock(_store: Store, report: Report, *, logs_dir: str) -> None:
    with AuditLogLock(logs_dir, 0.0):
        report("held")
        signal.pause()


def test_a_child_of_the_holder_does_not_keep_the_lock(logs_dir: Path) -> None:
    """Such as a tmux server, which lives on when the command that started it has ended."""
    with AuditLogLock(str(logs_dir), 0.0):
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    with AuditLogLock(str(logs_dir), 0.0):
        assert child.poll() is None
    child.communicate()
