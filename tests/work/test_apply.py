"""The changes of a job reach a checkout whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.scripted_claude import Project, project_fixture

__all__ = ["project_fixture"]


def state(project: Project) -> tuple[str, str, str]:
    git = project.repository.git
    return git("rev-parse", "HEAD"), git("status", "--porcelain"), git("for-each-ref", "refs/heads")


def test_a_branch_behind_is_moved_forward_and_the_job_notes_it(project: Project) -> None:
    job = project.run("echo b > b.txt")
    commit = project.mam("apply", job).line
    assert commit == project.repository.git("rev-parse", "main")
    assert (project.path / "b.txt").read_text() == "b\n"
    applied = project.mam.record(job)["applied"]
    assert (applied["how"], applied["branch"], applied["commit"]) == ("fast-forward", "main", commit)
    assert project.mam("logs", job).out.count("applied") == 1
    shown = project.mam("show", job).out
    assert "✓ applied to main by " in shown
    assert "mam apply" not in shown
    again = project.mam("apply", job)
    assert (again.line, "already" in again.stderr) == (commit, True)
    assert project.mam.record(job)["applied"] == applied


def test_a_branch_with_new_commits_needs_a_merge_by_the_user(project: Project) -> None:
    job = project.run("echo b > b.txt")
    project.repository.commit("c.txt", "c\n")
    commit = project.mam("apply", job).line
    assert project.files() >= {"a.txt", "b.txt", "c.txt"}
    log = project.repository.git("log", "-1", "--format=%an|%s|%(trailers:key=Mam-Job,valueonly)|%p", commit)
    assert log.startswith(f"Anna|Merge job {job[:8]}: work|{job}")
    assert len(log.rpartition("|")[2].split()) == 2
    assert project.repository.git("status", "--porcelain") == ""


def test_a_conflict_changes_nothing_and_names_the_way_on(project: Project) -> None:
    job = project.run("echo theirs > a.txt")
    project.repository.commit("a.txt", "ours\n")
    before = state(project)
    project.mam("apply", job).failed(1, "conflicts with main in a.txt", f"mam continue {job[:8]}", "nothing changed")
    project.mam("apply", job, "--patch").failed(1, "conflicts with main")
    assert state(project) == before
    assert project.mam.record(job)["applied"] is None


def test_patch_leaves_the_changes_staged(project: Project) -> None:
    job = project.run("echo b > b.txt; echo two >> a.txt")
    before = project.repository.git("rev-parse", "HEAD")
    assert project.mam("apply", job, "--patch").line == before
    assert project.repository.git("status", "--porcelain").split("\n") == ["M  a.txt", "A  b.txt"]
    assert project.mam.record(job)["applied"]["how"] == "staged"


@pytest.mark.parametrize("patch", [(), ("--patch",)])
def test_other_uncommitted_files_stay_and_touched_ones_are_not_overwritten(
    project: Project, patch: tuple[str, ...]
) -> None:
    job = project.run("echo b > b.txt; echo two >> a.txt")
    (project.path / "b.txt").write_text("mine\n")
    (project.path / "a.txt").write_text("mine\n")
    before = state(project)
    project.mam("apply", job, *patch).failed(1, "a.txt, b.txt would be overwritten")
    assert state(project) == before
    (project.path / "b.txt").unlink()
    project.repository.git("checkout", "-q", "a.txt")
    (project.path / "sub/deep/file.txt").write_text("mine\n")
    (project.path / "other.txt").write_text("mine\n")
    assert project.mam("apply", job, *patch).code == 0
    assert (project.path / "sub/deep/file.txt").read_text() == "mine\n"


def test_apply_uses_the_branch_that_is_checked_out_in_the_current_directory(project: Project, tmp_path: Path) -> None:
    job = project.run("echo b > b.txt")
    side = tmp_path / "side"
    project.repository.git("worktree", "add", "-q", "-b", "side", str(side))
    assert project.mam("apply", job, cwd=side, MAM_STORE=str(project.path / ".mam/jobs")).code == 0
    assert project.repository.git("rev-parse", "side") != project.repository.git("rev-parse", "main")
    assert (side / "b.txt").exists()
    assert project.mam.record(job)["applied"]["branch"] == "side"


def test_from_the_worktree_of_the_job_it_goes_to_the_users_checkout(project: Project) -> None:
    job = project.run("echo b > b.txt")
    place = Path(project.mam.record(job)["run"]["place"])
    assert project.mam("apply", job, cwd=place, MAM_STORE=str(project.path / ".mam/jobs")).code == 0
    assert (project.path / "b.txt").exists()


@pytest.mark.parametrize("hindrance", ["detached", "merging", "running", "nothing", "inside a job"])
def test_what_it_cannot_do_is_reported_in_one_line(project: Project, hindrance: str) -> None:
    job = project.run("true" if hindrance == "nothing" else "echo b > b.txt")
    words = {"detached": "git switch", "merging": "a merge is in progress", "nothing": "changed nothing",
             "running": "mam wait", "inside a job": "only a person"}[hindrance]  # fmt: skip
    if hindrance == "detached":
        project.repository.git("checkout", "-q", "--detach")
    elif hindrance == "merging":
        (project.path / ".git/MERGE_HEAD").write_text(project.repository.git("rev-parse", "HEAD"))
    elif hindrance == "running":
        job = project.queue(job, "true")
    if hindrance == "inside a job":
        project.mam.env["MAM_SOCKET"] = "/x"
    project.mam("apply", job).failed(1, words)


def test_a_repeat_completes_what_a_killed_apply_left(project: Project) -> None:
    """git has updated index and files, and was killed before it moved the branch."""
    job = project.run("echo b > b.txt; echo two >> a.txt")
    after = project.mam.record(job)["run"]["changes"]["after"]
    project.repository.git("read-tree", "-m", "-u", "HEAD", after)
    assert project.mam("apply", job).line == after
    assert project.repository.git("status", "--porcelain") == ""
