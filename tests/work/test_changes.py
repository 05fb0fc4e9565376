"""Where the changes of a job are: recorded, committed, and shown as a diff."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import await_that
from tests.work.scripted_claude import Project, project_fixture

__all__ = ["project_fixture"]


def changes(project: Project, job: str) -> dict[str, Any]:
    found: dict[str, Any] = project.mam.record(job)["run"]["changes"]
    return found


def wait_for_file(project: Project, job: str, name: str) -> None:
    """Until the agent of the running job has made it."""
    await_that(lambda: (project.mam.record(job)["run"] or {}).get("place"), "it did not start")
    await_that(Path(project.mam.record(job)["run"]["place"], name).exists, "the agent did not begin")


SLOW = "work\ndo: echo b > b.txt; touch begun; sleep 600"


def test_a_worktree_is_committed_by_the_user_with_the_job_in_a_trailer(project: Project) -> None:
    job = project.run("echo b > b.txt; echo two >> a.txt")
    found = changes(project, job)
    assert (found["files"], found["added"], found["removed"], found["shared"]) == (2, 2, 0, False)
    assert found["before"] == project.repository.git("rev-parse", "main")
    log = project.repository.git("log", "-1", "--format=%an <%ae>|%s|%(trailers:key=Mam-Job,valueonly)", found["after"])
    assert log == f"Anna <anna@example.org>|work|{job}"
    assert project.repository.git("rev-parse", found["branch"]) == found["after"]


def test_the_stored_diff_is_shown_if_the_repository_is_missing(project: Project) -> None:
    """As on another host, which has the store and not the repository."""
    job = project.run("echo b > b.txt")
    here = project.mam("diff", job).out
    away = project.repository.path.rename(project.repository.path.with_name("away"))
    shown = project.mam("diff", job, "--store", str(away / ".mam/jobs"), cwd=away.parent)
    assert (shown.code, shown.out) == (0, here), shown.stderr


def test_after_an_error_the_work_is_committed_as_wip(project: Project) -> None:
    job = project.run("echo b > b.txt; exit 1", code=7)
    assert project.repository.git("log", "-1", "--format=%s", changes(project, job)["branch"]) == "wip: work"
    assert "+b\n" in project.mam("diff", job).out


def test_after_a_cancel_the_work_is_committed_as_wip(project: Project) -> None:
    job = project.mam("register", SLOW, "--agent", "claude-code", "--worktree").line
    worker = project.mam.start("worker", "-s", "claude-code", "--once")
    try:
        wait_for_file(project, job, "begun")
        assert "+b\n" in project.mam("diff", job).out, "a running job shows what it has so far"
        assert project.mam("cancel", job).code == 0
        worker.communicate()
    finally:
        if worker.poll() is None:
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
    assert project.repository.git("log", "-1", "--format=%s", changes(project, job)["branch"]) == "wip: work"
    assert "+b\n" in project.mam("diff", job).out


def test_the_work_of_a_killed_worker_is_committed_before_it_is_shown(project: Project) -> None:
    job = project.mam("register", SLOW, "--agent", "claude-code", "--worktree").line
    worker = project.mam.start("worker", "-s", "claude-code", "--once")
    wait_for_file(project, job, "begun")
    worker.kill()
    worker.communicate()
    assert project.mam("cancel", job).code == 0
    assert "+b\n" in project.mam("diff", job).out
    assert project.repository.git("log", "-1", "--format=%s", changes(project, job)["branch"]) == "wip: work"


def test_the_diff_is_there_when_worktree_and_branch_are_gone(project: Project) -> None:
    job = project.run("echo b > b.txt")
    whole = project.mam("diff", job).out
    assert project.mam("workspaces", "--remove", job, "--force").code == 0
    project.repository.git("branch", "-D", changes(project, job)["branch"])
    project.repository.git("gc", "--prune=now", "--quiet")
    assert project.mam("diff", job).out == whole
    assert "+++ b/b.txt" in whole


def test_prune_removes_the_refs_of_the_jobs_that_it_archives_and_no_others(project: Project) -> None:
    old = [
        project.run("echo b > b.txt"),
        project.run("echo c > c.txt", words=()),
        project.run("true", words=("--fresh",)),
    ]
    newest = project.run("echo d > d.txt")
    project.repository.git("update-ref", f"refs/mam/{'0' * 32}/before", "main")
    whole = project.mam("diff", old[0]).out

    assert project.mam("prune", "--older-than", "0").out == "3 completed moved\n"

    left = project.repository.git("for-each-ref", "--format=%(refname)", "refs/mam").splitlines()
    assert {name.split("/")[2] for name in left} == {"0" * 32, newest}
    assert project.mam("diff", old[0]).out == whole, "the branch still has the commit"
    project.mam("workspaces", "--remove", old[0], "--force")
    project.repository.git("branch", "-D", changes(project, old[0])["branch"])
    project.repository.git("gc", "--prune=now", "--quiet")
    assert project.mam("diff", old[0]).out == whole, "the store has a copy"
    project.mam("diff", old[0], "--stat").failed(1, "git has removed its objects from")


def test_prune_continues_after_a_missing_or_broken_repository(project: Project) -> None:
    job = project.run("echo b > b.txt")
    project.run("echo c > c.txt")
    (project.path / ".git/HEAD").rename(project.path / ".git/no-head")

    assert project.mam("prune", "--older-than", "0").out == "1 completed moved\n"

    (project.path / ".git/no-head").rename(project.path / ".git/HEAD")
    assert job in project.repository.git("for-each-ref", "refs/mam")


def test_it_shows_one_job_or_its_chain_all_or_a_path(project: Project) -> None:
    first = project.run("echo b > b.txt")
    second = project.mam("run", "--continue", first, "do: echo c > c.txt", "--json").json["job_id"]
    assert project.mam("diff", second, "--stat").out.splitlines()[0].split() == ["c.txt", "|", "1", "+"]
    chain = project.mam("diff", second, "--chain").out
    assert "+++ b/b.txt" in chain
    assert "+++ b/c.txt" in chain
    path = project.mam("diff", second, "--chain", "--", "b.txt").out
    assert ("b.txt" in path, "c.txt" in path) == (True, False)
    assert project.mam("diff", second, "--json").json["shared"] is False


def test_the_diff_of_a_job_does_not_contain_what_later_jobs_of_its_chain_did(project: Project) -> None:
    first = project.run("echo b > b.txt")
    whole = project.mam("diff", first).out
    assert project.mam("run", "--continue", first, "do: echo c > c.txt").code == 0
    assert project.mam("diff", first).out == whole
    assert project.mam("apply", first).code == 0
    assert "c.txt" not in project.files()


def test_what_a_killed_worker_left_belongs_to_its_job_and_not_to_the_continuation(project: Project) -> None:
    first = project.mam("register", SLOW, "--agent", "claude-code", "--worktree").line
    worker = project.mam.start("worker", "-s", "claude-code", "--once")
    wait_for_file(project, first, "begun")
    await_that(lambda: (project.mam.record(first)["run"].get("agent") or {}).get("session"), "it has no session")
    worker.kill()
    worker.communicate()
    assert project.mam("cancel", first).code == 0
    second = project.mam("run", "--continue", first, "do: echo c > c.txt", "--json").json["job_id"]
    assert "b.txt" not in project.mam("diff", second).out
    assert "b.txt" in project.mam("diff", first).out
    assert "c.txt" not in project.mam("diff", first).out


def test_in_a_shared_directory_the_trees_are_kept_and_the_index_is_not_touched(project: Project) -> None:
    (project.path / "mine.txt").write_text("mine\n")
    project.repository.git("add", "mine.txt")
    (project.path / "loose.txt").write_text("loose\n")
    before = project.repository.git("status", "--porcelain"), (project.path / ".git/index").read_bytes()
    job = project.run("echo b > b.txt; echo two >> a.txt; rm sub/deep/file.txt", words=())
    found = changes(project, job)
    assert (found["files"], found["added"], found["removed"], found["shared"]) == (3, 2, 1, True)
    assert (project.path / ".git/index").read_bytes() == before[1]
    shown = project.mam("diff", job, "--stat")
    assert "may include their changes" in shown.stderr
    assert "mine.txt" not in shown.out
    assert project.repository.git("cat-file", "-t", f"refs/mam/{job}/before") == "tree"
    project.mam("apply", job).failed(1, "are there already")


def test_outside_of_a_repository_there_is_nothing_to_show(project: Project) -> None:
    job = project.run("true", words=("--fresh",))
    project.mam("diff", job).failed(1, "did not run in a git repository")
    project.mam("apply", job).failed(1, "nothing to apply")


def test_the_closing_lines_name_the_changes_and_the_next_commands(project: Project) -> None:
    ran = project.mam("run", "work\ndo: echo b > b.txt", "--agent", "claude-code", "--worktree")
    short = project.mam("list", "--json").json[0]["job_id"][:8]
    lines = ran.stderr.splitlines()
    assert lines[-2] == f"  1 file +1 -0 on mam/work-do-echo-b-b-txt-{short}"
    assert lines[-1] == f'  next: mam diff {short} · mam apply {short} · mam continue {short} "…"'


def test_comments_on_the_diff_are_one_continuation(project: Project) -> None:
    job = project.run("echo b > b.txt")
    editor = project.path.parent / "editor"
    editor.write_text('#!/bin/sh\nsed \'/^+b/a # why b?\' "$1" >"$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    new = project.mam("diff", job, "--comment", EDITOR=str(editor)).line
    record = project.mam.record(new)
    assert record["continues"] == job
    assert "b.txt, line 1:\n    +b\nwhy b?" in record["prompt"]
    assert project.mam("diff", job, "--comment", EDITOR="true").out == ""
    project.mam("diff", job, "--comment", EDITOR="false").failed(1, "exited with 1")
    assert len(project.mam("list", "--json").json) == 2


@pytest.mark.parametrize("state", ["merge", "no commit", "bare"])
def test_an_odd_repository_does_not_stop_a_job(project: Project, tmp_path: Path, state: str) -> None:
    if state == "merge":
        project.repository.git("checkout", "-q", "-b", "side")
        project.repository.commit("a.txt", "side\n")
        project.repository.git("checkout", "-q", "main")
        project.repository.commit("a.txt", "main\n")
        with pytest.raises(Exception, match="returned non-zero"):
            project.repository.git("merge", "side")
    elif state == "no commit":
        project.repository.git("update-ref", "-d", "HEAD")
    else:
        project.repository.git("config", "core.bare", "true")
    job = project.run("echo x > x.txt", words=())
    assert project.mam.record(job)["status"] == "completed"
