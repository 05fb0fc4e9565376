"""Verbs that take several jobs or filters: cancel, retry, release, wait."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import Mam, finish


@pytest.mark.parametrize("verb", ["cancel", "retry", "release", "wait"])
def test_no_job_and_no_filter_is_a_mistake(mam: Mam, verb: str) -> None:
    mam("init")
    mam(verb).failed(2, "give the id")
    mam(verb, "x", "--status", "pending").failed(2, "not both")
    mam(verb, "--status", "banana").failed(2, "banana")
    mam(verb, "--since", "yesterday").failed(2, "--since")
    mam(verb, "--agent-session", "").failed(2, "label is empty")


@pytest.mark.parametrize("verb", ["cancel", "retry", "release", "wait"])
def test_filters_that_match_nothing_are_no_failure(mam: Mam, verb: str) -> None:
    mam("init")
    ran = mam(verb, "--agent-session", "nobody")
    assert (ran.code, ran.out, ran.stderr) == (0, "", "mam: no job matches\n")
    assert mam(verb, "--agent-session", "nobody", "--json").json == []


def test_cancel_of_several_jobs_continues_after_an_error(mam: Mam) -> None:
    first, done, last = mam.register(), mam.register(), mam.register()
    mam("complete", done)
    ran = mam("cancel", first, done, "nope", "--job", last, "--reason", "enough")
    assert ran.code == 1
    assert ran.out.splitlines() == [first, last]
    assert len(ran.stderr.splitlines()) == 2
    assert mam.record(last)["reason"] == "enough"
    assert mam.status(done) == "completed"


def test_job_ids_may_come_between_options(mam: Mam) -> None:
    first, last = mam.register(), mam.register()
    assert mam("cancel", first, "--reason", "-", last).out.splitlines() == [first, last]


def test_cancel_by_filter_selects_open_jobs(mam: Mam) -> None:
    done, later = mam.register(), mam.register("x", "--at", "+1h")
    mam("complete", done)
    pending, other = mam.register(), mam.register("x", "-s", "other")
    assert mam("cancel", "-s", "shell", "--since", "1h").out.splitlines() == [pending, later]
    assert mam.status(other) == "pending"
    assert [record["job_id"] for record in mam("cancel", "-s", "other", "--json").json] == [other]


def test_an_attempt_applies_to_one_job(mam: Mam) -> None:
    first, second = mam.register(), mam.register()
    mam("cancel", first, second, "--attempt", "1").failed(2, "one job")
    mam("release", first, second, "--attempt", "1").failed(2, "one job")


def test_release_by_filter_selects_running_jobs(mam: Mam) -> None:
    running, pending = mam.register(), mam.register()
    assert mam("pick", "-s", "shell").line == running
    assert mam("release", "-s", "shell").line == running
    assert [mam.status(job) for job in (running, pending)] == ["pending", "pending"]


def test_a_repeated_retry_returns_the_same_new_job(mam: Mam) -> None:
    job = mam.register("again", "--artifact", "a.md")
    mam("retry", job).failed(1, "pending")
    mam("fail", job, "--reason", "boom")
    new = mam("retry", job).line
    assert new != job
    assert mam("retry", job).line == new
    record = mam.record(new)
    assert (record["retry_of"], record["prompt"], record["expected_artifacts"]) == (job, "again", ["a.md"])
    assert mam.status(job) == "error"


def test_retry_by_filter_takes_errors_that_were_not_retried(mam: Mam) -> None:
    failed, called_off, done = mam.register(), mam.register(), mam.register()
    mam("fail", failed, "--reason", "boom")
    mam("cancel", called_off)
    mam("complete", done)
    new = mam("retry", "-s", "shell").line
    assert mam.record(new)["retry_of"] == failed
    assert mam("retry", "-s", "shell").stderr == "mam: no job matches\n"
    assert mam("retry", "--status", "cancelled,error").code == 0
    assert {record["retry_of"] for record in mam("list", "--json").json} == {None, failed, called_off}


def test_wait_prints_each_job_that_ends(mam: Mam) -> None:
    first, second = mam.register(), mam.register()
    waiting = mam.start("wait", first, second[:10], "--timeout", "50")
    mam("complete", second)
    mam("complete", first)
    ran = finish(waiting)
    assert ran.code == 0
    assert sorted(ran.out.splitlines()) == sorted([f"{first}\tcompleted", f"{second}\tcompleted"])


def test_wait_reports_the_outcomes_by_its_exit_code(mam: Mam) -> None:
    done, failed, called_off, pending = (mam.register() for _ in range(4))
    mam("complete", done)
    mam("fail", failed, "--reason", "boom")
    mam("cancel", called_off)
    assert mam("wait", done).code == 0
    assert mam("wait", done, called_off).code == 8
    assert mam("wait", called_off, failed).code == 7
    assert mam("wait", "-s", "shell", "--status", "error,completed").code == 7
    late = mam("wait", failed, pending, "--timeout", "0.05")
    assert (late.code, late.out) == (5, f"{failed}\terror\n")
    assert "0.05 s" in late.stderr


def test_wait_continues_after_an_unknown_job(mam: Mam) -> None:
    done = mam.register()
    mam("complete", done)
    ran = mam("wait", "nope", done)
    assert (ran.code, ran.out) == (1, f"{done}\tcompleted\n")
    assert "nope" in ran.stderr


def test_wait_gives_the_records_at_the_end(mam: Mam) -> None:
    done, pending = mam.register(), mam.register()
    mam("complete", done)
    assert [record["status"] for record in mam("wait", done, "--json").json] == ["completed"]
    late = mam("wait", done, pending, "--json", "--timeout", "0")
    assert late.code == 5
    assert [record["status"] for record in json.loads(late.out)] == ["completed", "pending"]


def test_wait_shows_a_person_how_far_it_is(mam: Mam) -> None:
    done, pending = mam.register(), mam.register()
    mam("complete", done)
    shown = mam.on_terminal("wait", done, pending, "--timeout", "0.3")
    assert shown.code == 5
    assert "1/2" in shown.out
    assert "1 pending" in shown.out
    assert f"{done[:8]} completed" in shown.out
