"""docs/how-to/live-session.md with `sh` in place of a coding agent: it runs what it is sent as commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import finish
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.agents.sessions import Sessions

pytestmark = pytest.mark.external

MAM = f"{sys.executable} -m mam"


def registered(sessions: Sessions) -> str:
    assert sessions.mam("agents", "start", "claude", "--agent", "shell", "--", "sh").code == 0
    return sessions.mam("register", "Make the test pass", "--agent", "shell", "-s", "tmux:claude").line


def test_a_shell_works_as_a_session_with_the_commands_of_the_page(sessions: Sessions) -> None:
    job = registered(sessions)
    assert "MAM-claude" in sessions.mam("agents", "list").out
    claimed = sessions.mam.here / "claimed"
    assert sessions.send("claude", f"{MAM} pick -s tmux:claude --export > {claimed}").code == 0
    await_that(lambda: claimed.exists() and claimed.read_text().endswith("\n"), "the shell did not pick")
    assert sessions.send("claude", f"env $(cat {claimed}) {MAM} complete --result done").code == 0
    await_that(lambda: sessions.mam.status(job) == "completed", "the shell did not complete the job")
    assert sessions.mam("agents", "stop", "claude").code == 0
    sessions.mam("agents", "resolve", "claude").failed(1, "it has been stopped since")


def test_a_worker_gives_it_a_job_that_a_person_completes_in_it(sessions: Sessions) -> None:
    job = registered(sessions)
    worker = sessions.mam.start("worker", "--in", "claude", "--once")
    assert worker.stderr is not None
    while b"handed to claude" not in (line := worker.stderr.readline()):
        assert line, "the worker ended before it handed the job to the session"
    sessions.tmux("send-keys", "-t", "=claude:", f"{MAM} complete {job}", "Enter")
    ran = finish(worker)
    assert (ran.code, sessions.mam.status(job)) == (0, "completed"), ran.stderr
