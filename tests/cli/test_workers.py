"""`mam workers`, with real workers: what it shows of them, and how it ends one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tests.waiting import await_that
from tests.work.worker_commands import Working, ended, heard, mam_fixture, no_process_left, plain_fixture

if TYPE_CHECKING:
    import subprocess

    from tests.cli.command import Mam

__all__ = ["mam_fixture", "no_process_left", "plain_fixture"]

LEASE = ("--lease", "3")
"""A worker looks every second for what it was asked."""


def listed(mam: Mam) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = mam("workers", "--json").json
    return found


def names(mam: Mam) -> list[str]:
    return [one["worker"] for one in listed(mam) if one["worker"] is not None]


def registered(mam: Mam, process: subprocess.Popen[bytes]) -> str:
    """The name of this worker, once it is listed."""
    await_that(lambda: any(one.get("pid") == process.pid for one in listed(mam)), "the worker is not listed")
    return next(str(one["worker"]) for one in listed(mam) if one.get("pid") == process.pid)


def running(mam: Mam, job: str) -> None:
    await_that(lambda: mam.record(job)["status"] == "running", "the job does not run")


def blocked_job(mam: Mam) -> str:
    """A job that runs until `go` exists."""
    return mam("register", "until [ -e go ]; do sleep 0.05; done", "--agent", "shell").line


def test_a_worker_is_listed_with_what_it_serves_and_holds_until_it_ends(mam: Mam) -> None:
    job = blocked_job(mam)
    with Working(mam, "-s", "shell", "-s", "tmux:büro", "--concurrency", "2", "--once", *LEASE) as worker:
        name = registered(mam, worker)
        running(mam, job)

        (one,) = listed(mam)
        assert name.endswith(f"@{os.uname().nodename}:{worker.pid}")
        assert (one["host"], one["state"], one["concurrency"]) == (os.uname().nodename, "live", 2)
        assert one["labels"] == ["shell", "tmux:büro"]
        assert {"shell", "human"} <= set(one["agents"])
        assert one["version"] == mam("--version").line.removeprefix("mam ")
        since = mam.record(job)["claimed_at"]
        assert one["holds"] == [{"job_id": job, "label": "shell", "since": since}]
        assert f"1/2 {job[:8]}" in mam("workers").line

        (mam.here / "go").touch()
        assert worker.wait() == 0

    assert listed(mam) == []
    assert mam("workers").out == ""


def test_drain_lets_a_worker_finish_its_job_and_claim_no_other(mam: Mam) -> None:
    first = blocked_job(mam)
    with Working(mam, "-s", "shell", *LEASE) as worker:
        name = registered(mam, worker)
        running(mam, first)
        second = mam("register", "true", "--agent", "shell").line

        assert mam("workers", "drain", name).line == name
        assert [one["state"] for one in listed(mam)] == ["draining"]
        heard(worker, b"asked to drain")
        (mam.here / "go").touch()

        assert worker.wait() == 0
    assert (mam.record(first)["status"], mam.record(second)["status"]) == ("completed", "pending")


def test_stop_after_drain_releases_the_job(mam: Mam) -> None:
    job = blocked_job(mam)
    with Working(mam, "-s", "shell", *LEASE) as worker:
        name = registered(mam, worker)
        running(mam, job)
        mam("workers", "drain", name)
        heard(worker, b"asked to drain")

        assert mam("workers", "stop", name, "--json").json == {"worker": name, "asked": "stop"}

        assert worker.wait() == 0
    assert (mam.record(job)["status"], mam.record(job)["losses"]) == ("pending", 0)
    (mam.here / "go").touch()


def test_only_the_worker_that_was_asked_exits(plain: Mam) -> None:
    plain("init")
    with Working(plain, "-s", "a", *LEASE) as one, Working(plain, "-s", "b", *LEASE) as other:
        asked, left = registered(plain, one), registered(plain, other)

        plain("workers", "drain", asked)

        assert one.wait() == 0
        assert names(plain) == [left]
        assert other.poll() is None


def test_a_killed_worker_disappears_with_its_lease_and_its_job_with_it(plain: Mam) -> None:
    job = blocked_job(plain)
    with Working(plain, "-s", "shell", *LEASE) as worker:
        name = registered(plain, worker)
        running(plain, job)
        worker.kill()
        worker.wait()

    await_that(lambda: name not in names(plain), "a killed worker stays listed")
    plain("workers", "drain", name).failed(1, "No live worker has the name", name, "mam workers")
    (plain.here / "go").touch()
    with Working(plain, "-s", "shell", "--drain", *LEASE) as worker:
        assert worker.wait() == 0
    assert ended(plain, job)["status"] == "completed"


def test_a_pick_loop_is_shown_by_its_owner(plain: Mam) -> None:
    job = plain("register", "think", "--agent", "codex", "-s", "desk").line
    plain("pick", "-s", "desk", "--owner", "anna's loop")

    (one,) = listed(plain)

    assert (one["worker"], one["owner"], one["labels"]) == (None, "anna's loop", ["desk"])
    assert [held["job_id"] for held in one["holds"]] == [job]


def test_workers_rejects_arguments_that_name_no_worker(plain: Mam) -> None:
    plain("register", "think", "--agent", "codex")
    for words in (("drain",), ("drain", "a", "b"), ("end", "anna@forge:1")):
        plain("workers", *words).failed(2, "give the name of one worker")
    plain("workers", "stop", "a\x1b[2J\nb").failed(1, "No live worker has the name")
    plain("workers", "stop", "anna@forge:1", "--json").failed(1, "No live worker has the name")


def test_explain_and_register_know_the_worker_that_serves_a_job(plain: Mam) -> None:
    (plain.home / "tool").write_text("#!/bin/sh\n")
    (plain.home / "tool").chmod(0o755)
    job = plain("register", "think", "--agent", "shell", "-s", "two words").line
    assert "`mam worker -s 'two words'` starts one" in plain("explain", job).out
    live = plain("register", "think", "--agent", "codex", "-s", "tmux:claude").line
    assert "`mam worker --in claude` starts one" in plain("explain", live).out
    assert "not an agent that mam can run here" in plain("register", "x", "--agent", "mytool", "-s", "mine").stderr

    folder = plain.home / "config" / "mam"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f'[commands.mytool]\nargv = ["{plain.home}/tool"]\n')
    with Working(plain, "-s", "mine", *LEASE) as worker:
        name = registered(plain, worker)
        (folder / "config.toml").unlink()

        later = plain("register", "x", "--agent", "mytool", "-s", "mine", "--at", "+1h")
        assert (later.code, later.stderr) == (0, "")
        plain("pause", "--agent-session", "mine")
        held = plain("register", "x", "--agent", "mytool", "-s", "mine").line
        assert f"Live workers that serve its label: {name}." in plain("explain", held).out


def test_a_terminal_shows_a_table(plain: Mam) -> None:
    plain("init")
    assert "no worker runs; `mam worker -s LABEL` starts one" in plain.on_terminal("workers").out
    with Working(plain, "-s", "shell", *LEASE) as worker:
        name = registered(plain, worker)
        shown = plain.on_terminal("workers", columns=200).out
    assert "WORKER" in shown
    assert name in shown
