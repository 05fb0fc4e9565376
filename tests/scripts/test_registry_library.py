"""`import registry`: the functions of the seed by their names."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mam import compat
from mam.errors import BadInput, IllegalMove, StoreMissing, UnknownJob, UnknownStatus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scripts.conftest import Shell


@pytest.fixture
def registry_dir(tmp_path: Path) -> Path:
    return tmp_path / ".mam" / "jobs"


def test_an_old_script_works_on_the_library(shell: Shell) -> None:
    """The walk of a job by library calls, one process, relative defaults."""
    told = shell.code("""
import json, registry
job_id = registry.register_job("정렬 문제", "claude-code", "tmux:claude", expected_artifacts=["a.md"])
assert registry.pick_pending("tmux:other") is None
assert registry.pick_pending("tmux:claude") == job_id
assert registry.pick_pending("tmux:claude") is None
with registry.registry_lock(".mam/jobs"):
    assert [registry.next_seq(job_id) for _ in range(3)] == [1, 2, 3]
    registry.update_status(job_id, "error")
assert registry.load_job(job_id) == registry.get_job(job_id)
print(json.dumps(registry.list_jobs()))
""")
    (record,) = json.loads(told)
    assert record["status"] == "error"
    assert record["prompt"] == "정렬 문제"
    assert record["workdir"] == str(shell.here)
    # The refusal to look elsewhere: the file is where the seed says.
    shown = json.loads((shell.here / ".mam" / "jobs" / f"{record['job_id']}.json").read_bytes())
    del shown["registry"]
    assert record == shown


def test_defaults_are_those_of_the_seed(registry_dir: Path) -> None:
    job_id = compat.register_job("p", "claude-code", "tmux:claude", registry_dir=registry_dir)
    record = compat.get_job(job_id, registry_dir)
    seed = {
        "schema_version": 1, "job_id": job_id, "status": "pending", "prompt": "p", "agent": "claude-code",
        "agent_session": "tmux:claude", "topic_prefix": f"python/mqtt/jobs/{job_id}", "timeout_sec": 3600,
        "idle_timeout_sec": 120, "expected_artifacts": [], "last_seq": 0, "auth_token": None,
    }  # fmt: skip
    assert {name: record[name] for name in seed} == seed
    assert set(record["broker"]) == {"host", "port", "tls", "username", "password"}


def test_sequence_numbers_of_many_threads_are_all_different(registry_dir: Path) -> None:
    """M-11."""
    job_id = compat.register_job("p", "a", registry_dir=registry_dir)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: compat.next_seq(job_id, registry_dir), range(100)))
    assert sorted(numbers) == list(range(1, 101))
    assert compat.get_job(job_id, registry_dir)["last_seq"] == 100


def test_bad_input_raises_an_error(registry_dir: Path) -> None:
    with pytest.raises(StoreMissing):
        compat.pick_pending("a", registry_dir)
    job_id = compat.register_job("p", "a", registry_dir=registry_dir)
    with pytest.raises(UnknownStatus):
        compat.update_status(job_id, "banana", registry_dir)
    with pytest.raises(UnknownJob):
        compat.update_status("nobody", "completed", registry_dir)
    assert compat.update_status(job_id, "cancelled", registry_dir)["status"] == "cancelled"
    with pytest.raises(IllegalMove):
        compat.update_status(job_id, "completed", registry_dir)


def test_the_lock_keeps_other_processes_out(shell: Shell, registry_dir: Path) -> None:
    """The lock excludes other writers; the thread that holds it can still write."""
    job_id = compat.register_job("p", "a", "a", registry_dir=registry_dir)
    shell.environment["MAM_LOCK_WAIT_SECONDS"] = "0"
    with compat.registry_lock(registry_dir):
        kept_out = shell.run("registry.py", "pick", "--agent-session", "a")
        assert (kept_out.returncode, kept_out.stdout) == (9, "")
        assert compat.next_seq(job_id, registry_dir) == 1
    assert shell.run("registry.py", "pick", "--agent-session", "a").stdout == f"{job_id}\n"


@pytest.mark.parametrize("address", ["sqlite:///tmp/jobs.db", "postgresql://me:secret@host/jobs"])
def test_a_database_has_no_such_lock(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MAM_STORE", address)
    with pytest.raises(BadInput, match="only a directory of files has a lock") as refused:
        compat.registry_lock()
    assert "MAM_STORE" in str(refused.value)
    assert "secret" not in str(refused.value)
