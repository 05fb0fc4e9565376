"""The audit log of a registry that several sessions write to."""

from __future__ import annotations

from pathlib import Path

from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore
from tests.audit.support import history_in, history_in_log, status_json


def test_sessions_that_take_turns_leave_nothing_out(url: str, tmp_path: Path) -> None:
    logs_dir = tmp_path / "logs"
    stores = [PostgresStore(url) for _ in range(3)]
    first, second, third = (Registry(store, AuditLog(str(logs_dir))) for store in stores)
    ids = []
    for _ in range(5):
        ids.append(first.register(prompt="p", agent="a").job.job_id)
        job = second.pick("a", owner="second")
        assert job is not None
        third.publish(job.job_id, event="progress", attempt=1)
        first.complete(job.job_id, attempt=1)
    numbers = [entry.number for entry in stores[0].entries(None)]
    assert numbers == sorted(numbers), "in the order of their commits"
    AuditLog(str(logs_dir)).catch_up(stores[0])
    assert history_in_log(logs_dir) == history_in(stores[0])
    assert {status_json(logs_dir, job_id)["status"] for job_id in ids} == {"completed"}
    for store in stores:
        store.close()
