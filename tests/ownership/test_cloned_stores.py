"""mam does not use a store that came with a repository before the user approves it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Mam
from tests.ownership.repositories import (
    EVIL,
    clone_with,
    cloned,
    committed,
    counting_broker,
    git,
    repository,
    shell_job,
)

WORK = ("worker", "-s", "shell", "--drain")
VERBS = (
    WORK, ("list",), ("get", EVIL), ("pick", "-s", "shell"), ("publish", EVIL, "progress"), ("prune",),
    ("relay", "--once"),
    ("register", "x", "--agent", "shell"), ("init",), ("run", "--", "true"), ("logs", EVIL), ("wait", EVIL), ("stats",),
    ("subscribe", EVIL), ("cancel", EVIL), ("migrate", ".mam/jobs", "elsewhere"), ("pause", "--agent", "shell"),
    ("inbox", "once", "--mode", "flat", "--agent", "shell"),
)  # fmt: skip


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "it-ran"


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_every_verb_refuses_a_cloned_store_and_leaves_it_as_it_is(mam: Mam, mark: Path, words: tuple[str, ...]) -> None:
    here = clone_with(mam, mark)
    before = contents(here / ".mam")
    ran = mam(*words)
    ran.failed(1, f"mam trust {here}/.mam/jobs", "git tracks")
    assert contents(here / ".mam") == before
    assert not mark.exists()


def test_a_hook_stays_silent_and_writes_nothing(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark, status="running")
    before = contents(here / ".mam")
    ran = mam("hook", "claude-code", stdin=b'{"hook_event_name": "PermissionRequest"}', MAM_JOB_ID=EVIL)
    assert (ran.code, ran.out, ran.stderr) == (0, "", "")
    assert contents(here / ".mam") == before


def test_approved_once_the_store_is_used_until_that_is_revoked(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark)
    ran = mam("trust")
    assert ran.line == f"{here}/.mam/jobs"
    assert "git tracks" in ran.stderr
    assert mam("trust", "--list").line == f"{here}/.mam/jobs\tstore\ttrusted"
    assert mam("trust", "--list", "--json").json[0]["store"] == f"{here}/.mam/jobs"
    assert mam(*WORK).code == 0
    assert mark.exists()
    assert mam.status(EVIL) == "completed"
    assert mam("trust", "--revoke", ".mam/jobs").line == f"{here}/.mam/jobs"
    mam("list").failed(1, "mam trust")
    mam("trust", "--revoke", ".mam/jobs").failed(1)


def test_a_job_cannot_approve_a_store(mam: Mam, mark: Path) -> None:
    clone_with(mam, mark)
    mam("trust", ".mam/jobs", MAM_SOCKET="/nowhere").failed(1, "inside a job")
    mam("list").failed(1, "mam trust")


def test_approval_is_of_one_directory_and_not_of_its_path(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark)
    mam("trust")
    aside = here / ".mam/aside"
    (here / ".mam/jobs").rename(aside)
    shutil.copytree(aside, here / ".mam/jobs")
    assert mam("trust", "--list").line.endswith("\tchanged")
    mam("list").failed(1, "mam trust")


def test_with_a_config_file_the_store_must_be_named(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark)
    (here / ".mam/config.toml").write_text('default_agent = "codex"\n')
    assert mam("trust").line == f"{here}/.mam/config.toml"
    mam("list").failed(1, f"mam trust {here}/.mam/jobs")
    assert mam("trust", ".mam/jobs").line == f"{here}/.mam/jobs"
    assert mam("list").code == 0
    assert mam("trust", "--list").out.count("trusted\n") == 2


def test_where_and_doctor_name_the_reason(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark)
    ran = mam("where")
    assert ran.line == f"{here}/.mam/jobs"
    assert "mam trust" in ran.stderr
    before = contents(here / ".mam")
    assert "mam trust" in mam("doctor", "--fix").out
    assert contents(here / ".mam") == before


def test_a_tracked_store_of_the_old_scripts(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark, ".hermes/jobs")
    mam(*WORK).failed(1, f"mam trust {here}/.hermes/jobs")
    assert not mark.exists()


def test_the_name_of_the_store_is_not_its_approval(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark, "queue")
    for ran in (
        mam(*WORK, "--store", "queue"),
        mam(*WORK, "--registry-dir", "queue"),
        mam(*WORK, MAM_STORE=f"{here}/queue"),
    ):
        ran.failed(1, f"mam trust {here}/queue")
    assert not mark.exists()
    assert mam("trust", "--store", "queue").line == f"{here}/queue"
    assert mam(*WORK, "--store", "queue").code == 0
    assert mark.exists()


def test_the_library_of_the_old_scripts_refuses_too(mam: Mam, mark: Path) -> None:
    here = clone_with(mam, mark)
    scripts = Path(__file__).parents[2] / "scripts"
    for code in ("registry.pick_pending('shell')", "registry.registry_lock().__enter__()"):
        ran = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(scripts)!r}); import registry; {code}"],
            cwd=here, env=mam.env, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert "StoreUntrusted" in ran.stderr


# -- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [".mam", ".mam/jobs", ".hermes"])
@pytest.mark.parametrize("there", [True, False], ids=["a store", "nothing yet"])
def test_a_link_of_the_repository_does_not_decide_where_the_store_is(
    mam: Mam, tmp_path: Path, mark: Path, link: str, there: bool
) -> None:
    target = tmp_path / "elsewhere"
    jobs = target if link.endswith("jobs") else target / "jobs"
    jobs.mkdir(parents=True)
    if there:
        (jobs / f"{EVIL}.json").write_text(shell_job(mark))
    elif jobs != target:
        jobs.rmdir()
    upstream = repository(mam.home / "upstream")
    (upstream / link).parent.mkdir(exist_ok=True)
    (upstream / link).symlink_to(target)
    committed(upstream)
    here = cloned(mam, upstream)
    before = contents(target)
    store = f"{here}/{link}" if link.endswith("jobs") else f"{here}/{link}/jobs"
    verbs = [WORK, ("register", "x", "--agent", "shell"), ("init",)] if there or link != ".hermes" else []
    for words in (*verbs, ("init", "--store", store)):
        mam(*words).failed(1, f"mam trust {store}", "link")
    assert contents(target) == before
    assert not mark.exists()


def test_a_link_of_the_users_own_is_followed(mam: Mam, tmp_path: Path) -> None:
    shutil.rmtree(mam.here)
    repository(mam.here)
    (tmp_path / "data").mkdir(mode=0o700)
    (mam.here / ".mam").symlink_to(tmp_path / "data")
    job = mam.register()
    assert mam.status(job) == "pending"


def test_a_link_for_the_audit_log(mam: Mam, tmp_path: Path) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / ".mam").mkdir()
    (upstream / ".mam/delegate_job_logs").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    committed(upstream)
    cloned(mam, upstream)
    mam("register", "x", "--agent", "shell").failed(1, "delegate_job_logs", "link")
    assert list((tmp_path / "outside").iterdir()) == []


# -- other places that are read --------------------------------------------------------------------------------------


def test_prompts_that_came_with_a_repository_become_no_jobs(mam: Mam) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / ".mam/inbox").mkdir(parents=True)
    for name in ("evil.prompt.md", "worse.running.md"):
        (upstream / ".mam/inbox" / name).write_text("do harm\n")
    committed(upstream)
    here = cloned(mam, upstream)
    once = ("inbox", "once", "--mode", "flat", "--agent", "shell", "--concurrency", "0")
    (here / ".mam/inbox/own.prompt.md").write_text("do good\n")
    ran = mam(*once)
    assert "evil.prompt.md" in ran.stderr
    assert "mam trust" in ran.stderr
    assert [job["prompt"].strip() for job in mam("list", "--json").json] == ["do good"]


def test_an_inbox_whose_ledger_came_with_a_repository_needs_trust(mam: Mam) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / ".mam/.queue/jobs/x").mkdir(parents=True)
    (upstream / ".mam/.queue/jobs/x/job.json").write_text("{}")
    committed(upstream)
    here = cloned(mam, upstream)
    mam("inbox", "once", "--mode", "flat", "--agent", "shell").failed(1, f"mam trust {here}/.mam/.queue")


def test_sessions_that_came_with_a_repository_are_not_used(mam: Mam) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / "agents/live_agents/x").mkdir(parents=True)
    (upstream / "agents/live_agents/x/record.json").write_text("{}")
    committed(upstream)
    here = cloned(mam, upstream)
    mam("agents", "list", MAM_AGENTS_DIR=f"{here}/agents").failed(1, f"mam trust {here}/agents")
    mam("migrate", "agents", "copied").failed(1, f"mam trust {here}/agents")


def test_a_queue_that_came_with_a_repository_is_not_migrated(mam: Mam) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / "queue/x").mkdir(parents=True)
    for name in ("job.json", "state"):
        (upstream / "queue/x" / name).write_text("{}")
    committed(upstream)
    here = cloned(mam, upstream)
    mam("migrate", "queue", "copied").failed(1, f"mam trust {here}/queue")
    assert not (here / "copied").exists()


@pytest.mark.parametrize("target", ["copied", "sqlite://{here}/copied"], ids=["files", "sqlite"])
def test_a_half_filled_copy_that_came_with_a_repository_is_not_finished(mam: Mam, mark: Path, target: str) -> None:
    upstream = repository(mam.home / "upstream")
    filling = target.format(here=upstream) + ".filling"
    mam("register", f"touch {mark}", "--agent", "shell", "--store", filling, cwd=upstream)
    here = cloned(mam, committed(upstream))
    own = str(mam.home / "own")
    assert mam("register", "true", "--agent", "shell", "--store", own).code == 0
    mam("migrate", own, target.format(here=here)).failed(1, f"mam trust {here}/copied.filling")
    assert not (here / "copied").exists()


# -- the broker of a record ------------------------------------------------------------------------------------------


def test_no_connection_is_made_to_the_broker_of_a_cloned_record(mam: Mam, mark: Path) -> None:
    with counting_broker() as (port, heard):
        broker = {"host": "127.0.0.1", "port": port, "username": "u", "password": "secret"}
        clone_with(mam, mark, broker=broker)
        for words in (WORK, ("publish", EVIL, "progress"), ("relay", "--once"), ("subscribe", EVIL, "--timeout", "1")):
            mam(*words, MQTT_USERNAME="me", MQTT_PASSWORD="hunter2").failed(1, "mam trust")
        assert heard == []


# -- databases -------------------------------------------------------------------------------------------------------


def database_with(mam: Mam, mark: Path, name: str = "jobs.db") -> Path:
    """In a repository upstream, untracked as yet."""
    upstream = repository(mam.home / "upstream")
    address = f"sqlite://{upstream}/{name}"
    assert mam("register", f"touch {mark}", "--agent", "shell", "--store", address).code == 0
    return upstream


def test_a_cloned_database_needs_trust(mam: Mam, mark: Path) -> None:
    here = cloned(mam, committed(database_with(mam, mark)))
    address = f"sqlite://{here}/jobs.db"
    mam(*WORK, "--store", address).failed(1, f"mam trust {here}/jobs.db")
    mam("init", "--store", address).failed(1, "git tracks")
    assert not mark.exists()
    assert mam("trust", f"{here}/jobs.db").line == f"{here}/jobs.db"
    assert mam(*WORK, "--store", address).code == 0
    assert mark.exists()


def test_a_database_behind_a_link_of_the_repository(mam: Mam, mark: Path) -> None:
    upstream = database_with(mam, mark)
    target = mam.home / "other.db"
    (upstream / "jobs.db").rename(target)
    (upstream / "jobs.db").symlink_to(target)
    here = cloned(mam, committed(upstream))
    mam(*WORK, "--store", f"sqlite://{here}/jobs.db").failed(1, "link")
    assert not mark.exists()


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-secrets"])
def test_a_tracked_file_beside_a_database_needs_trust(mam: Mam, suffix: str) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / f"jobs.db{suffix}").write_bytes(b"x" * 4096)
    here = cloned(mam, committed(upstream))
    mam("init", "--store", f"sqlite://{here}/jobs.db").failed(1, f"jobs.db{suffix}")


def test_a_projects_own_files_do_not_matter(mam: Mam) -> None:
    upstream = repository(mam.home / "upstream")
    (upstream / ".mam").mkdir()
    (upstream / ".mam/config.toml").write_text("")
    (upstream / ".mam/.gitignore").write_text("jobs\n")
    cloned(mam, committed(upstream))
    assert mam.status(mam.register()) == "pending"
    assert json.loads(mam("list", "--json").out)[0]["status"] == "pending"
    assert git("ls-files", cwd=mam.here).split() == [".mam/.gitignore", ".mam/config.toml"]
