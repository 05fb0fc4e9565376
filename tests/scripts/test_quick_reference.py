"""The quick references of the seed, sections 6 and 7, line by line and in their order."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.scripts.conftest import Shell

REGISTER = (
    "registry.py", "register", "--prompt", "…", "--agent", "claude-code",
    "--agent-session", "tmux:claude", "--timeout", "3600", "--idle-timeout", "120",
)  # fmt: skip

PYTHONS = {
    "installed": (sys.executable,),
    "without the environment": (sys.executable, "-E"),
}


def test_a_bare_clone_names_the_package_that_it_needs(shell: Shell) -> None:
    done = shell.run(*REGISTER, python=(sys.executable, "-S", "-E"))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "pip install 'apsw" in done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_the_quick_references_work_in_their_order(shell: Shell, python: str) -> None:
    def run(*words: str, exits: int = 0) -> str:
        done = shell.run(*words, python=PYTHONS[python])
        assert done.returncode == exits, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    job_id = run(*REGISTER).removesuffix("\n")
    assert (shell.here / ".mam" / "jobs" / f"{job_id}.json").exists()

    assert job_id[:8] in run("registry.py", "list")
    assert [job["job_id"] for job in json.loads(run("registry.py", "list", "--json"))] == [job_id]
    record = json.loads(run("registry.py", "get", "--job", job_id))
    shown = json.loads((shell.here / ".mam" / "jobs" / f"{job_id}.json").read_bytes())
    del shown["registry"]
    assert record == shown
    assert (record["prompt"], record["timeout_sec"], record["idle_timeout_sec"]) == ("…", 3600, 120)
    run("registry.py", "status", "--job", job_id, "--set", "completed")
    assert json.loads(run("registry.py", "get", "--job", job_id))["status"] == "completed"
    assert run("registry.py", "pick", "--agent-session", "tmux:claude", exits=3) == ""

    assert len(run("registry.py", "logs", job_id).splitlines()) == 4
    assert len(run("registry.py", "logs", job_id, "--tail", "20").splitlines()) == 4
    told = [json.loads(line) for line in run("registry.py", "logs", job_id, "--json").splitlines()]
    assert [line["event"] for line in told] == ["registered", "status_changed", "status_changed", "published"]
    listed = run("registry.py", "logs", "--list").splitlines()
    assert len(listed) == 1
    assert "completed" in listed[0]


def test_pick_claims_the_oldest_of_its_label_until_none_is_left(shell: Shell) -> None:
    """M-04, M-05."""
    first, second = (shell.run(*REGISTER).stdout.strip() for _ in range(2))
    other = shell.run("registry.py", "pick", "--agent-session", "tmux:other")
    assert (other.returncode, other.stdout) == (3, "")
    picks = [shell.run("registry.py", "pick", "--agent-session", "tmux:claude") for _ in range(3)]
    assert [(done.returncode, done.stdout) for done in picks] == [(0, f"{first}\n"), (0, f"{second}\n"), (3, "")]


def test_bad_input_exits_with_one_and_changes_nothing(shell: Shell) -> None:
    """M-03, M-08, M-09."""
    job_id = shell.run(*REGISTER).stdout.strip()
    file = shell.here / ".mam" / "jobs" / f"{job_id}.json"
    before = file.read_bytes()
    for words in (
        ("status", "--job", job_id, "--set", "banana"),
        ("status", "--job", "nobody", "--set", "completed"),
        ("get", "--job", "nobody"),
        ("get", "--job", "../x"),
    ):
        done = shell.run("registry.py", *words)
        assert (done.returncode, done.stdout) == (1, ""), words
    assert file.read_bytes() == before


def test_the_registry_directory_can_be_named(shell: Shell) -> None:
    job_id = shell.run(*REGISTER, "--registry-dir", "elsewhere/jobs").stdout.strip()
    for words in (("list", "--json"), ("get", "--job", job_id), ("logs", job_id)):
        done = shell.run("registry.py", *words, "--registry-dir", "elsewhere/jobs")
        assert done.returncode == 0, done.stderr
        assert done.stdout
    assert (shell.here / "elsewhere" / "delegate_job_logs" / job_id / "meta.json").exists()


def test_a_log_that_cannot_be_written_breaks_no_command(shell: Shell) -> None:
    """M-20."""
    (shell.here / "blocked").write_text("a file, not a directory")
    shell.environment["DELEGATE_JOB_LOGS_DIR"] = str(shell.here / "blocked" / "logs")
    registered = shell.run(*REGISTER)
    assert registered.returncode == 0
    job_id = registered.stdout.strip()
    for words in (("pick", "--agent-session", "tmux:claude"), ("status", "--job", job_id, "--set", "completed")):
        done = shell.run("registry.py", *words)
        assert done.returncode == 0
        assert "audit log" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_history_outlives_the_registry(shell: Shell) -> None:
    """M-21."""
    job_id = shell.run(*REGISTER).stdout.strip()
    shell.run("registry.py", "pick", "--agent-session", "tmux:claude")
    shutil.rmtree(shell.here / ".mam" / "jobs")
    told = shell.run("registry.py", "logs", job_id)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 2
    assert "running" in shell.run("registry.py", "logs", "--list").stdout
    assert not (shell.here / ".mam" / "jobs").exists()


def test_the_tail_of_a_history_is_printed(shell: Shell) -> None:
    """M-22."""
    job_id = shell.run(*REGISTER).stdout.strip()
    shell.run("registry.py", "pick", "--agent-session", "tmux:claude")
    shell.run("registry.py", "status", "--job", job_id, "--set", "completed")
    whole = shell.run("registry.py", "logs", job_id).stdout.splitlines()
    assert shell.run("registry.py", "logs", job_id, "--tail", "2").stdout.splitlines() == whole[-2:]
    raw = shell.run("registry.py", "logs", job_id, "--json", "--tail", "2").stdout.splitlines()
    assert [json.loads(line)["event"] for line in raw] == ["status_changed", "published"]


def test_every_logged_job_is_listed_with_its_status(shell: Shell) -> None:
    """M-23."""
    pending, ended = (shell.run(*REGISTER).stdout.strip() for _ in range(2))
    shell.run("registry.py", "status", "--job", ended, "--set", "cancelled")
    rows = shell.run("registry.py", "logs", "--list").stdout.splitlines()
    assert len(rows) == 2
    for job_id, status in ((pending, "pending"), (ended, "cancelled")):
        (row,) = [row for row in rows if row.startswith(job_id)]
        assert status in row


def test_the_log_goes_into_the_directory_of_the_variable(shell: Shell) -> None:
    shell.environment["DELEGATE_JOB_LOGS_DIR"] = str(shell.here / "history")
    job_id = shell.run(*REGISTER).stdout.strip()
    assert (shell.here / "history" / job_id / "events.ndjson").exists()
    assert not (shell.here / ".mam" / "delegate_job_logs").exists()
