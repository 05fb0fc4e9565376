"""What users stumbled over in their first week, one test for each."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.command import Mam
from tests.cli.terminal import ENTER, ESCAPE, Terminal

ROOT = Path(__file__).parents[2]


def test_a_job_for_a_person_has_no_timeout_unless_one_is_given(mam: Mam) -> None:
    mine = mam.record(mam("register", "sign it", "--agent", "human").line)
    assert (mine["timeout_sec"], mine["idle_timeout_sec"]) == (0, 0)
    limited = mam.record(mam("register", "sign it", "--agent", "human", "--timeout", "60").line)
    assert (limited["timeout_sec"], limited["idle_timeout_sec"]) == (60, 0)
    shell = mam.record(mam.register())
    assert (shell["timeout_sec"], shell["idle_timeout_sec"]) == (3600, 120)


@pytest.mark.external
def test_a_pending_job_for_a_person_needs_you(mam: Mam) -> None:
    before = mam("register", "sign it", "--agent", "human", "-s", "anna").line
    with Terminal(mam._argv(("watch",)), mam.here, mam.env, columns=100, rows=24) as terminal:
        terminal.shows("NEEDS YOU  1", f"{before[:8]}  ☞ yours", "mam pick -s anna", "1 needs you", "1 pending")
        after = mam("register", "count them", "--agent", "human").line
        terminal.shows("NEEDS YOU  2", after[:8])
        mam("cancel", before)
        terminal.shows("NEEDS YOU  1", f"{before[:8]}  ⊘ cancelled")


@pytest.mark.external
def test_escape_leads_from_a_store_back_to_all_stores(mam: Mam) -> None:
    mam.env["XDG_STATE_HOME"] = str(mam.home / "state")
    mam.register("do it", "--at", "+1h")
    with Terminal(mam._argv(("watch", "--everywhere")), mam.here, mam.env, columns=80, rows=20) as terminal:
        terminal.shows("mam everywhere", "·        ·        1        ·")
        terminal.type(ENTER)
        terminal.shows("WAITING  1", "q back")
        terminal.type(ESCAPE)
        terminal.shows("mam everywhere")
        terminal.type("q")
        assert terminal.ended() == 0


def test_a_mistyped_agent_is_reported_with_a_suggestion(mam: Mam) -> None:
    mam("init")
    ran = mam("register", "do it", "--agent", "cluade-code")
    assert ran.code == 0
    assert "cluade-code is not an agent that mam can run here (did you mean claude-code?)" in ran.stderr
    assert mam("register", "do it", "--agent", "claude-code").stderr == ""


def test_retries_without_a_retryable_failure_are_reported(mam: Mam) -> None:
    mam("init")
    ran = mam("register", "exit 1", "--agent", "shell", "--max-retries", "2")
    assert "an exit code is one only with --retry-on-exit" in ran.stderr
    for words in (["--retry-on-exit", "--max-retries", "2"], ["--max-retries", "0"], []):
        assert mam("register", "exit 1", "--agent", "shell", *words).stderr == ""
    assert mam("register", "x", "--agent", "codex", "--max-retries", "2").stderr == ""


def test_resume_frees_the_job_that_met_the_limit(mam: Mam) -> None:
    from mam.config.settings import Config
    from mam.jobs.usage_limit import limit_pause, wait_for_reset
    from mam.location.stores import open_registry

    job, other = mam("register", "x", "--agent", "codex").line, mam.register("x", "--at", "+1h")
    mam("pick", "-s", "codex")
    registry = open_registry(None, str(mam.here / ".mam" / "jobs"), Config())
    now = registry.store.clock.now()
    until = now.wall_ms + 3_600_000
    pause = limit_pause((), registry.get(job), until, "limit", now)
    assert pause is not None
    registry.pause(pause)
    registry.act(job, "limited", lambda one, at: wait_for_reset(
        one, at, attempt=1, until_ms=until, reason="limit", run={}
    ))  # fmt: skip
    assert mam.record(job)["waiting_for"] == "reset"

    assert mam("resume", "--agent", "codex").code == 0

    found = mam.record(job)
    assert (found["status"], found["waiting_for"], found["due_at"]) == ("pending", None, None)
    assert mam.status(other) == "waiting"
    assert mam("pick", "-s", "codex").line == job


def test_a_store_in_the_settings_reports_what_it_hides(mam: Mam) -> None:
    mam("init")
    ran = mam("config", "set", "store", str(mam.home / "jobs"))
    assert f"it hides {mam.here}/.mam/jobs" in ran.stderr
    assert mam("config", "set", "store", str(mam.home / "jobs"), cwd=mam.home).stderr == ""


def test_the_extra_all_has_the_broker_and_no_test_tools() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert "broker" in everything
    assert "testing" not in everything


@pytest.mark.parametrize(
    ("word", "meant"), [("failed", "error"), ("done", "completed"), ("canceled", "cancelled"), ("queued", "pending")]
)
def test_another_word_for_a_status_is_a_usage_error_with_a_hint(mam: Mam, word: str, meant: str) -> None:
    mam("init")
    mam("list", "--status", word).failed(2, f"did you mean {meant}?")


def test_list_finds_jobs_by_agent_and_by_text(mam: Mam) -> None:
    first = mam.register("Fix the Login test")
    second = mam("register", "write docs", "--agent", "codex").line
    mam("complete", second, "--result", "the LOGIN page is described")
    third = mam.register("nothing")
    mam("cancel", third, "--reason", "login is gone")

    def ids(*words: str) -> list[str]:
        return [one["job_id"] for one in mam("list", "--json", *words).json]

    assert ids("--agent", "codex") == [second]
    assert ids("--search", "login") == [third, second, first]
    assert ids("--search", "login", "--agent", "shell", "--status", "pending") == [first]
    assert ids("--search", "100%_") == []


def test_cancel_all_asks_first(mam: Mam) -> None:
    waiting, pending = mam.register("x", "--at", "+1h"), mam.register()
    done = mam.register()
    mam("complete", done)
    mam("cancel", "--all").failed(2, "--yes")
    mam("cancel", "--all", pending).failed(2, "--all")
    with Terminal(mam._argv(("cancel", "--all")), mam.here, mam.env, columns=80, rows=20) as terminal:
        terminal.shows("Cancel 2 jobs, 0 of them running? [y/N]")
        terminal.type("n\r")
        assert terminal.ended() == 1
    assert mam.status(pending) == "pending"
    assert sorted(mam("cancel", "--all", "--yes").out.split()) == sorted([waiting, pending])
    assert (mam.status(done), mam.status(waiting)) == ("completed", "cancelled")
    assert mam("cancel", "--all").code == 0


def test_a_missing_store_leads_to_the_list_of_all_stores(mam: Mam) -> None:
    mam("list").failed(9, "mam list --everywhere")
