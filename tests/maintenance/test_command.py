"""`mam migrate` as a person meets it: what it says, what it leaves behind, and what it refuses."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from mam.maintenance.old_jobs import OldJobs
from mam.stores.port import Query
from tests.cli.command import Mam
from tests.maintenance.registries import contents, furnish, made, migrate, opened


@pytest.fixture
def origin(mam: Mam) -> str:
    path = str(mam.here / "from")
    furnish(made(path), 30)
    return path


def test_the_new_registry_is_whole(mam: Mam, origin: str) -> None:
    ran = mam("migrate", origin, ".mam/jobs")
    assert ran.code == 0, ran.stderr
    assert "copied and compared" in ran.out
    assert (mam.here / ".mam/.gitignore").read_text() == "*\n"
    assert {path.name for path in (mam.here / ".mam").iterdir()} == {".gitignore", "jobs", "delegate_job_logs"}
    audit = [found for found in mam("doctor", "--json").json["findings"] if found["check"] == "audit log"]
    assert [found["state"] for found in audit] == ["fine"], "its history has every entry before the first act"


def test_a_look_changes_nothing(mam: Mam, origin: str) -> None:
    answer = mam("migrate", origin, ".mam/jobs", "--dry-run", "--json").json
    assert answer["dry_run"]
    assert answer["jobs"] == len(list(opened(origin).select(Query())))
    assert not (mam.here / ".mam").exists()


def test_a_job_that_is_not_copied_is_named_with_exit_1(mam: Mam, origin: str) -> None:
    store = opened(origin)
    store.sweep()  # by which the record files are known to be whole
    broken = next(store.select(Query())).job_id
    (Path(origin) / f"{broken}.json").write_text("{")
    ran = mam("migrate", origin, ".mam/jobs")
    assert ran.code == 1
    assert f"mam: not copied: {broken}.json: " in ran.stderr
    assert "another new store" in ran.stderr
    assert len(mam("list", "--json").json) == len(contents(opened(origin))["jobs"])


def test_a_registry_with_jobs_is_refused(mam: Mam, origin: str) -> None:
    mam("register", "mine", "--agent", "shell")
    mam("migrate", origin, ".mam/jobs").failed(9, "not empty")
    assert len(mam("list", "--json").json) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give FROM and TO"),
        (("from",), "give FROM and TO"),
        (("from", "from"), "the same"),
        (("from", "mysql://x/y"), "not a kind of store"),
        (("from", "to", "--store", "to"), "does not accept --store"),
    ],
)
def test_lines_that_mean_nothing(mam: Mam, origin: str, words: tuple[str, ...], told: str) -> None:
    mam("migrate", *words).failed(2, told)


def test_a_source_that_is_not_there(mam: Mam) -> None:
    mam("migrate", "nowhere", "to").failed(9, "No store at")
    assert not list(mam.here.iterdir())


def test_records_of_scripts_that_are_being_written(tmp_path: Path) -> None:
    """By scripts that know nothing of mam's journal: what they wrote before the end is there, nothing by half."""
    tree = tmp_path / "old"
    tree.mkdir(mode=0o700)

    def write(number: int, prompt: str) -> None:
        record = {
            "schema_version": 1, "job_id": f"job{number:05d}", "status": "pending", "prompt": prompt, "agent": "codex",
            "agent_session": "codex", "created_at": "2026-06-19T09:30:00Z", "updated_at": "2026-06-19T09:30:00Z",
            "topic_prefix": "x", "timeout_sec": 1, "idle_timeout_sec": 1, "expected_artifacts": [], "last_seq": 0,
            "auth_token": None, "broker": {},
        }  # fmt: skip
        temporary = tree / ".tmp"
        temporary.write_text(json.dumps(record))
        temporary.rename(tree / f"job{number:05d}.json")

    for number in range(250):
        write(number, "as it was")

    def change() -> None:
        for number in (1, 240, 300):
            write(number, "changed")

    def disturb(count: int) -> None:
        writer = threading.Thread(target=change)
        writer.start()
        writer.join()

    migrate(str(tree), str(tmp_path / "to"), disturb)
    prompts = {job.job_id: job.prompt for job in opened(str(tmp_path / "to")).select(Query())}
    there = {job_id: json.loads((tree / f"{job_id}.json").read_text())["prompt"] for job_id in OldJobs(str(tree)).ids()}
    assert prompts == there
    assert list(prompts.values()).count("changed") == 3
