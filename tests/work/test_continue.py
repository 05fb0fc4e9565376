"""A job continues the conversation of another, in the same directory."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from mam.registry import Registry
from mam.stores.port import ClaimRequest
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.work.scripted_claude import Project, project_fixture

__all__ = ["project_fixture"]


def session(record: dict[str, Any]) -> str:
    return str(record["run"]["agent"]["session"])


def test_the_agent_continues_in_the_same_conversation_directory_and_branch(project: Project) -> None:
    first = project.run("echo b > b.txt")
    second = project.mam("run", "--continue", first, "more\ndo: cat b.txt > c.txt", "--json").json
    old = project.mam.record(first)
    assert (second["status"], second["result"], second["continues"]) == ("completed", "turn 2 done", first)
    assert session(second) == session(old)
    assert (second["run"]["place"], second["run"]["branch"]) == (old["run"]["place"], old["run"]["branch"])
    assert project.files(second["run"]["branch"]) == {"a.txt", "b.txt", "c.txt", "sub/deep/file.txt"}
    briefs = (project.sessions / f"{session(old)}.txt").read_text()
    assert f"It continues job {first}" in briefs


def test_a_command_given_while_it_runs_starts_when_it_has_ended(project: Project) -> None:
    first = project.mam("register", "work\ndo: echo b > b.txt; exit 1", "--agent", "claude-code", "--worktree").line
    second, third = project.queue(first, "cat b.txt > c.txt"), project.queue(first, "cat c.txt > d.txt")
    assert project.mam.record(third)["after"] == [first, second]
    project.work()
    records = [project.mam.record(job) for job in (first, second, third)]
    assert [record["status"] for record in records] == ["error", "completed", "completed"]
    assert len({session(record) for record in records}) == 1
    assert project.files(records[2]["run"]["branch"]) >= {"b.txt", "c.txt", "d.txt"}


def test_a_removed_worktree_is_recreated_at_the_same_path_and_branch(project: Project) -> None:
    first = project.run("echo b > b.txt")
    old = project.mam.record(first)["run"]
    assert project.mam("workspaces", "--remove", first, "--force").code == 0
    assert not os.path.exists(old["place"])
    second = project.mam("run", "--continue", first, "do: cat b.txt > c.txt", "--json").json
    assert (second["status"], second["run"]["place"]) == ("completed", old["place"])
    assert second["run"]["branch"] == old["branch"]
    assert project.files(old["branch"]) >= {"b.txt", "c.txt"}


def test_a_branch_that_is_gone_too_is_recreated_from_the_ref_of_mam(project: Project) -> None:
    first = project.run("echo b > b.txt")
    branch = project.mam.record(first)["run"]["branch"]
    assert project.mam("workspaces", "--remove", first, "--force").code == 0
    project.repository.git("branch", "-D", branch)
    second = project.mam("run", "--continue", first, "do: cat b.txt > c.txt", "--json").json
    assert (second["status"], second["run"]["branch"]) == ("completed", branch)
    assert project.files(branch) >= {"b.txt", "c.txt"}


def test_a_conversation_that_is_gone_is_reported_before_anything_is_registered(project: Project) -> None:
    first = project.run("echo b > b.txt")
    shutil.rmtree(project.sessions)
    before = len(project.mam("list", "--json").json)
    for words in (("continue", first, "more"), ("run", "--continue", first, "more"), ("retry", "--continue", first)):
        project.mam(*words).failed(1, "cannot continue the conversation", f"mam retry {first[:8]}")
    assert len(project.mam("list", "--json").json) == before


def test_a_conversation_that_goes_later_is_reported_before_the_agent_starts(project: Project) -> None:
    first = project.run("echo b > b.txt")
    second = project.queue(first, "touch /should-not-run")
    shutil.rmtree(project.sessions)
    project.work()
    record = project.mam.record(second)
    assert (record["status"], "agent" in record["run"]) == ("error", False)
    assert "has no file of conversation" in record["reason"]
    assert not project.sessions.exists(), "the agent was not started"


def test_artifacts_and_validation_are_not_inherited_and_may_be_given(project: Project) -> None:
    first = project.run("echo b > b.txt", words=("--worktree", "--artifact", "b.txt", "--timeout", "77"))
    record = project.mam.record(project.queue(first, "true"))
    assert (record["expected_artifacts"], record["validation"], record["timeout_sec"]) == ([], None, 77)
    checked = project.mam("continue", first, "more", "--artifact", "missing.txt").line
    project.work()
    assert project.mam.record(checked)["status"] == "error"


def test_a_retry_starts_from_the_beginning_and_with_the_option_it_continues(project: Project) -> None:
    failed = project.run("echo b >> b.txt; exit 1", code=7)
    again = project.mam("retry", failed, "--continue").line
    assert project.mam("retry", failed, "--continue").line == again
    project.work()
    record, old = project.mam.record(again), project.mam.record(failed)
    assert (record["retry_of"], record["continues"], session(record)) == (failed, failed, session(old))
    assert record["run"]["place"] == old["run"]["place"]
    third = project.mam("retry", again).line
    project.work()
    record = project.mam.record(third)
    assert (record["continues"], record["exclusive"], record["conversation"]) == (None, None, None)
    assert session(record) != session(old)
    assert record["run"]["place"] != old["run"]["place"]


def test_explain_names_the_host_of_the_conversation(project: Project) -> None:
    create_sqlite_store(str(project.path.parent / "jobs.db"))
    project.mam.env["MAM_STORE"] = f"sqlite://{project.path.parent}/jobs.db"
    first = project.run("true")
    second = project.queue(first, "true")
    store = SqliteStore(str(project.path.parent / "jobs.db"))
    registry = Registry(store)
    bound = store.get(second)
    elsewhere = {**(bound.conversation or {}), "host": "atlantis"}
    registry.act(second, "test", lambda job, _now: _moved_elsewhere(job, elsewhere))
    assert (
        "It continues a conversation that is on atlantis; only a worker there can claim it."
        in project.mam("explain", second).out
    )
    project.mam("pick", "-s", "claude-code").failed(3, "No pending job")
    picked = store.claim(ClaimRequest(label="claude-code", owner="w", host="atlantis"))
    assert picked is not None
    assert picked.job_id == second
    store.close()


def _moved_elsewhere(job: Any, conversation: dict[str, Any]) -> Any:
    from mam.jobs.change import Change

    line = {"timestamp": job.updated_at, "event": "adopted", "job_id": job.job_id}
    return Change(job=job.replace(conversation=conversation), lines=(line,))


@pytest.mark.parametrize("option", ["--agent=codex", "--workdir=/", "--fresh", "--worktree", "--after=x", "-s=x"])
def test_options_that_the_conversation_fixes_are_rejected(project: Project, option: str) -> None:
    first = project.run("true")
    project.mam("run", "--continue", first, "more", option).failed(2, "omit --")


def test_a_job_that_never_began_cannot_be_continued(project: Project) -> None:
    job = project.mam("register", "work", "--agent", "claude-code").line
    assert project.mam("cancel", job).code == 0
    project.mam("continue", job, "more").failed(1, "no conversation to continue", "mam retry")


def test_a_command_is_continued_in_its_directory(project: Project) -> None:
    first = project.mam("run", "--fresh", "--json", "--", "sh", "-c", "echo 1 > one").json["job_id"]
    second = project.mam("run", "--continue", first, "--json", "--", "cat", "one")
    assert (second.json["status"], second.json["result"]) == ("completed", "1")


def test_the_worktree_of_a_running_continuation_is_kept(project: Project) -> None:
    first = project.run("true")
    second = project.queue(first, "true")
    assert project.mam("pick", "-s", "claude-code").line == second
    project.mam("workspaces", "--remove", first, "--force").failed(1, f"job {second[:8]} is running in it")
