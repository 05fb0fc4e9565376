"""`mam inbox` and `mam service` as real processes, also killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.inbox.commands import WHERE, InboxCommand
from tests.needs import need
from tests.waiting import await_that

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def inbox(tmp_path: Path) -> InboxCommand:
    return InboxCommand(tmp_path)


def test_once_runs_the_present_files_and_names_their_outcomes(inbox: InboxCommand) -> None:
    inbox.drop("echo hello")
    inbox.drop("echo world", "y.prompt.md")
    lines = inbox.once()
    assert sorted((status, where) for _, status, where in lines) == [
        ("completed", f"finished/{WHERE}/x.done.md"), ("completed", f"finished/{WHERE}/y.done.md"),
    ]  # fmt: skip
    assert inbox.left() == []
    assert inbox.outcome().endswith("## Result\n\nhello\n")
    assert {job_id for job_id, _, _ in lines} == {job["job_id"] for job in inbox("list", "--json").json}
    assert {job_id for job_id, _, _ in lines} == set(os.listdir(inbox.here / ".queue" / "jobs"))
    assert inbox.once() == []


def test_once_reports_the_outcome_by_its_exit_code(inbox: InboxCommand) -> None:
    inbox.drop("true", "good.prompt.md")
    inbox.drop("exit 1", "bad.prompt.md")
    inbox.drop("", "empty.prompt.md")
    lines = inbox.once(code=7)
    assert sorted(status for _, status, _ in lines) == ["completed", "error", "refused"]
    ids = {status: job_id for job_id, status, _ in lines}
    assert ids.pop("refused") == "-", "there is no such job"
    assert set(ids.values()) == {job["job_id"] for job in inbox("list", "--json").json}
    inbox.drop("", "empty.prompt.md")
    inbox.once(code=1)


def test_once_waits_for_a_retry_and_not_for_next_week(inbox: InboxCommand) -> None:
    inbox.drop("---\nat: +7d\n---\ntrue", "later.prompt.md")
    inbox.drop("---\nlabel: somebody\n---\ntrue", "theirs.prompt.md")
    inbox.drop("true", "now.prompt.md")
    assert [where for _, _, where in inbox.once()] == [f"finished/{WHERE}/now.done.md"]
    assert inbox.left() == [f"{WHERE}/later.running.md", f"{WHERE}/theirs.running.md"]


def test_json_is_a_line_for_each_thing_that_happens(inbox: InboxCommand) -> None:
    import json

    inbox.drop("true")
    ran = inbox("inbox", "once", "--json")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert [event["event"] for event in events] == ["taken", "ended", "finished"]
    assert len({event["job_id"] for event in events}) == 1
    assert events[1]["status"] == "completed"
    assert events[2]["outcome"] == f"finished/{WHERE}/x.done.md"


def test_watch_takes_what_comes_and_status_shows_the_same_ids(inbox: InboxCommand, tmp_path: Path) -> None:
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    watcher = inbox.start("inbox", "watch", "--concurrency", "2")
    try:
        await_that(lambda: (inbox.here / "inbox").is_dir(), "it never began")
        inbox.drop(f"cat {pipe}")
        running = inbox.here / "inbox" / WHERE / "x.running.md"
        await_that(lambda: running.exists() and "running" in inbox("inbox", "status").out, "it was never taken")
        ((job_id, status, agent, file),) = [line.split("\t") for line in inbox("inbox", "status").out.splitlines()]
        assert (status, agent, file) == ("running", "shell", f"{WHERE}/x.running.md")
        assert inbox("list").out.startswith(job_id)
        (listed,) = inbox("inbox", "status", "--json").json["files"]
        assert listed == {"job_id": job_id, "status": "running", "agent": "shell", "file": f"{WHERE}/x.running.md"}
        pipe.write_text("through\n")
        await_that((inbox.here / "inbox" / WHERE / "x.done.md").exists, "it never ended")
        await_that((inbox.here / "finished" / WHERE / "x.done.md").exists, "it was never put away")
    finally:
        watcher.send_signal(signal.SIGTERM)
        out, err = watcher.communicate(timeout=60)
    assert watcher.returncode == 0, err
    assert out.decode() == f"{job_id}\tcompleted\tinbox/{WHERE}/x.done.md\n"


def test_a_watcher_that_is_killed_leaves_nothing_that_the_next_does_not_finish(
    inbox: InboxCommand, tmp_path: Path
) -> None:
    log = tmp_path / "numbers"
    for number in range(12):
        inbox.drop(f"echo {number} >> {log}", f"{number}.prompt.md")
    for _ in range(6):
        watcher = inbox.start("inbox", "watch")
        done = len(list((inbox.here / "finished").rglob("*.md"))) if (inbox.here / "finished").exists() else 0
        await_that(
            lambda done=done: _outcome(inbox) > done or not inbox.left(),  # type: ignore[misc]
            "nothing is ever done",
        )
        watcher.kill()
        watcher.communicate()
        _expire_leases(inbox)
    inbox.once()
    jobs = inbox("list", "--json").json
    assert len(jobs) == 12
    assert {job["status"] for job in jobs} == {"completed"}
    assert sorted(job["prompt"] for job in jobs) == sorted(f"echo {number} >> {log}" for number in range(12))
    assert len(list((inbox.here / "finished").rglob("*.done.md"))) == 12
    assert inbox.left() == []


def _outcome(inbox: InboxCommand) -> int:
    """How many files have the outcome done, wherever they are. Directories appear and disappear while a watcher
    works."""
    return sum(name.endswith(".done.md") for _, _, names in os.walk(inbox.here) for name in names)


def _expire_leases(inbox: InboxCommand) -> None:
    """Expire the leases of a killed watcher's jobs, so that the test need not wait for that."""
    for job in inbox("list", "--status", "running", "--json").json:
        inbox("release", job["job_id"])


def test_watchers_may_be_many_and_need_not_work(inbox: InboxCommand) -> None:
    watchers = [inbox.start("inbox", "watch", "--concurrency", "0") for _ in range(2)]
    try:
        await_that(lambda: (inbox.here / "inbox").is_dir(), "it never began")
        for number in range(20):
            inbox.drop("true", f"{number}.prompt.md")
        await_that(lambda: len(inbox("list", "--json").json) == 20, "not all were taken")
        assert len(inbox.left()) == 20
        assert inbox("worker", "-s", "inbox", "--drain").code == 0
        await_that(lambda: len(list((inbox.here / "finished").rglob("*.done.md"))) == 20, "some are missing")
    finally:
        for watcher in watchers:
            watcher.terminate()
            _out, err = watcher.communicate(timeout=60)
            assert watcher.returncode == 0, err
    assert len(inbox("list", "--json").json) == 20


def test_another_store_is_refused_and_not_even_made(inbox: InboxCommand, tmp_path: Path) -> None:
    inbox.drop("true")
    inbox.once()
    ran = inbox("--store", str(tmp_path / "other"), "inbox", "once")
    ran.failed(2, "belongs to the store", "inbox.db")
    assert not (tmp_path / "other").exists()


# -- what is wrong ---------------------------------------------------------------------------------------------------


def test_one_line_for_what_is_wrong(inbox: InboxCommand) -> None:
    inbox("inbox", "once", "--root", "nowhere").failed(2, "is not a directory", "--root")
    inbox("inbox", "once", "--mode", "deep").failed(2, "--mode takes multi-owner, single-owner or flat")
    inbox("inbox", "once", "--mode", "flat").failed(2, "flat mode is for one repository")
    inbox("inbox", "once", "--mode", "single-owner").failed(2, "needs `owner` in [inbox]")
    inbox("inbox", "watch", "--concurrency", "-1").failed(2, "--concurrency")
    inbox("inbox", "look").failed(2, "is not a verb of `mam inbox`")
    inbox("init")
    inbox("inbox", "status").failed(2, "there is no inbox at")
    inbox("service").failed(2, "give a service")
    inbox("service", "inbox", "--", "--agnet", "x").failed(2, "--agnet")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[inbox]\ncolour = "red"', "'colour' is not a setting of inbox"),
        ('[inbox]\nmode = "deep"', "mode must be one of"),
        ("[inbox]\nsettle_seconds = -1", "settle_seconds must be between 0 and 3,600"),
        ('[inbox]\nroot = "here"', "root must be an absolute path"),
        ("[inbox]\npull_request_command = []", "must be a list of texts"),
        ('[inbox]\nowners = ["no-such-user-here"]\nagent = "shell"', "no user 'no-such-user-here'"),
        ("[queue]\nmax_retries = true", "max_retries must be a whole number"),
        ('[queue]\njobs_root = "x"', "jobs_root must be an absolute path"),
        ('[repos]\n"shop" = "/x"', 'must be "owner/repo"'),
        ('[repos]\n"a/b" = "ext::sh -c id"', "no address that mam gives to git"),
        ('[repos]\n"a/b" = "--upload-pack=id"', "no address that mam gives to git"),
        ('[repos]\n"a/b" = "relative"', "must be an absolute path or an address"),
        ('[repos]\n"a/b" = 5', "must be a path or an address"),
    ],
)
def test_settings_that_are_wrong_are_named(inbox: InboxCommand, table: str, words: str) -> None:
    (inbox.home / "config" / "mam" / "config.toml").write_text(table)
    inbox("inbox", "once").failed(2, words)


def test_a_project_may_not_set_the_directory_of_repositories(inbox: InboxCommand) -> None:
    (inbox.here / ".mam").mkdir()
    (inbox.here / ".mam" / "config.toml").write_text('[repos]\n"acme/shop" = "/etc"\n')
    ran = inbox("inbox", "once")
    assert "is not trusted, so its repos does not count" in ran.stderr


# -- services --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["inbox", "worker"])
def test_a_unit_is_one_that_systemd_takes(inbox: InboxCommand, tmp_path: Path, what: str) -> None:
    odd = tmp_path / 'a "b" 100% $c'
    odd.mkdir()
    words = ["--", "--root", str(odd)] if what == "inbox" else ["--", "-s", "shell and more", "--concurrency", "4"]
    text = inbox("service", what, *words).out
    assert f"{sys.executable} -P -m mam {what}" in text
    assert f"--store {inbox.here}/.mam/jobs" in text
    assert "Restart=on-failure" in text
    need("systemd-analyze")
    unit = tmp_path / f"mam-{what}.service"
    unit.write_text(text)
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)], capture_output=True, text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, timeout=60,
    )  # fmt: skip
    ours = [line for line in ran.stderr.splitlines() if f"mam-{what}" in line]
    assert ours == [], ran.stderr


def test_a_unit_has_no_password(inbox: InboxCommand) -> None:
    text = inbox("--store", "postgresql://me:hunter2@db/jobs", "service", "worker", "--", "-s", "shell").out
    assert "hunter2" not in text
    assert "postgresql://me@db/jobs" in text


@pytest.mark.parametrize("verb", ["once", "watch"])
def test_without_its_extra_it_is_refused_before_anything_is_made(
    inbox: InboxCommand, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "watchfiles.py").write_text("raise ImportError('not installed')\n")
    inbox("inbox", verb, PYTHONPATH=str(tmp_path)).failed(2, "the extra `inbox`", "watchfiles")
    assert list(inbox.here.iterdir()) == []
