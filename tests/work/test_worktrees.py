"""A git worktree for each job: created once, reused by the next attempt, restored if something is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mam.errors import MachineUnfit, WorkDirMissing, WorkDirUnusable, WorkspaceKept
from mam.work.cleanup import list_workspaces, remove_workspace
from mam.work.git.worktrees import slug
from mam.work.job_dir import PLAN_FILE
from mam.work.workdir import prepare_workdir
from tests.disks import fill
from tests.needs import need
from tests.work.repositories import Repository, job_in, make_repository
from tests.work.workdir_fixtures import only, repository_fixture, work_fixture, world_fixture

__all__ = ["repository_fixture", "work_fixture", "world_fixture"]


def test_a_worktree_has_its_branch_at_head_and_the_same_subdirectory(repository: Repository, work: str) -> None:
    job = job_in(repository.path / "sub/deep", prompt="Fix the *flaky* login-test!\nand more")
    place = prepare_workdir(job, work, {})
    assert place.path == f"{work}/{job.job_id}/worktree/sub/deep"
    assert place.branch == "mam/fix-the-flaky-login-test-and-more-abc12345"
    assert Path(place.path, "file.txt").read_text() == "one\n"
    assert repository.git("rev-parse", "HEAD", cwd=place.path) == repository.git("rev-parse", "main")
    assert repository.git("branch", "--show-current", cwd=place.path) == place.branch
    assert repository.git("status", "--porcelain") == ""


def test_a_new_attempt_continues_with_what_is_there(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    Path(place.path, "half.txt").write_text("half")
    commit = repository.commit("done.txt", "done", cwd=place.path)
    repository.commit("sub/deep/file.txt", "two\n")

    assert prepare_workdir(job.replace(attempt=2), work, {}) == place
    assert Path(place.path, "half.txt").read_text() == "half"
    assert repository.git("rev-parse", "HEAD", cwd=place.path) == commit
    assert len(repository.worktrees()) == 2


def test_a_retry_is_another_job_with_a_place_of_its_own(repository: Repository, work: str) -> None:
    first = prepare_workdir(job_in(repository.path), work, {})
    second = prepare_workdir(job_in(repository.path, job_id="def67890", retry_of="abc12345"), work, {})
    assert first.path != second.path
    assert first.branch != second.branch


def test_ids_that_begin_alike_get_branches_of_their_own(repository: Repository, work: str) -> None:
    names = [
        prepare_workdir(job_in(repository.path, job_id=name), work, {}).branch for name in ("abc12345", "abc12345-2")
    ]
    assert names == ["mam/sort-ten-numbers-abc12345", "mam/sort-ten-numbers-abc12345-2"]


def test_a_worktree_of_a_worktree_belongs_to_the_same_repository(
    repository: Repository, work: str, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    head = repository.commit("there.txt", "x", cwd=tmp_path / "other")
    place = prepare_workdir(job_in(tmp_path / "other"), work, {})
    assert repository.git("rev-parse", "HEAD", cwd=place.path) == head
    assert place.path in repository.worktrees()


def test_a_subdirectory_that_the_commit_lacks_is_made(repository: Repository, work: str) -> None:
    (repository.path / "new/untracked").mkdir(parents=True)
    place = prepare_workdir(job_in(repository.path / "new/untracked"), work, {})
    assert place.path.endswith("/worktree/new/untracked")
    assert os.listdir(place.path) == []


def test_a_subdirectory_that_is_a_link_in_the_commit_is_not_followed(
    repository: Repository, work: str, tmp_path: Path
) -> None:
    os.symlink(tmp_path, repository.path / "out")
    repository.git("add", "out")
    repository.git("commit", "-qm", "a link")
    os.unlink(repository.path / "out")
    os.mkdir(repository.path / "out")
    with pytest.raises(WorkDirUnusable, match="by a link"):
        prepare_workdir(job_in(repository.path / "out"), work, {})


def test_odd_names_are_kept(tmp_path: Path, work: str) -> None:
    repository = make_repository(tmp_path / "a b\nc'\"$(x)é")
    repository.commit("-dash/new\nline/f", "x")
    place = prepare_workdir(job_in(repository.path / "-dash/new\nline"), work, {})
    assert os.listdir(place.path) == ["f"]
    assert not only(work).dirty


def test_a_directory_without_a_repository_is_broken(tmp_path: Path, work: str) -> None:
    need("git")
    (tmp_path / "plain").mkdir()
    with pytest.raises(WorkDirUnusable, match="not a git repository"):
        prepare_workdir(job_in(tmp_path / "plain"), work, {})
    empty = Repository(tmp_path / "empty")
    empty.path.mkdir()
    empty.git("init", "-q")
    with pytest.raises(WorkDirUnusable, match="no commit yet"):
        prepare_workdir(job_in(empty.path), work, {})
    with pytest.raises(WorkDirMissing):
        prepare_workdir(job_in(tmp_path / "gone"), work, {})


def test_a_bare_repository_inside_a_project_is_not_used(repository: Repository, work: str) -> None:
    repository.git("init", "-q", "--bare", "hidden")
    with pytest.raises(WorkDirUnusable, match="bare"):
        prepare_workdir(job_in(repository.path / "hidden"), work, {})


def test_a_missing_git_is_reported(repository: Repository, work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(WorkDirUnusable, match="git is not on PATH"):
        prepare_workdir(job_in(repository.path), work, {})


def test_a_full_disk_is_reported_until_there_is_room(small_disk: Path, repository: Repository) -> None:
    ballast = fill(small_disk)
    work, job = str(small_disk / "work"), job_in(repository.path)
    with pytest.raises(MachineUnfit, match="No space"):
        prepare_workdir(job, work, {})
    ballast.unlink()
    place = prepare_workdir(job, work, {})
    assert Path(place.path, "sub/deep/file.txt").read_text() == "one\n"
    remove_workspace(work, job.job_id, force=False)
    assert repository.branches() == {"main"}


def test_a_vanished_worktree_is_recreated_from_its_branch(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    commit = repository.commit("done.txt", "done", cwd=place.path)
    subprocess.run(["rm", "-rf", place.path], check=True)

    again = prepare_workdir(job.replace(attempt=2), work, {})
    assert again.path == place.path
    assert again.note is not None
    assert "recreated" in again.note
    assert repository.git("rev-parse", "HEAD", cwd=again.path) == commit


def test_a_vanished_repository_lets_the_job_wait(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    prepare_workdir(job, work, {})
    moved = repository.path.with_name("moved")
    repository.path.rename(moved)
    with pytest.raises(WorkDirMissing, match="not there"):
        prepare_workdir(job, work, {})
    held = only(work)
    assert held.problem is not None
    with pytest.raises(WorkspaceKept, match="git cannot read it"):
        remove_workspace(work, job.job_id, force=False)
    moved.rename(repository.path)
    assert prepare_workdir(job, work, {}).kind == "worktree"


def test_a_worktree_that_git_has_forgotten_is_not_thrown_away(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    Path(place.path, "work.txt").write_text("hours")
    subprocess.run(["rm", "-rf", str(repository.path / ".git/worktrees")], check=True)
    with pytest.raises(WorkDirUnusable, match="git no longer knows"):
        prepare_workdir(job, work, {})
    assert Path(place.path, "work.txt").read_text() == "hours"
    with pytest.raises(WorkspaceKept):
        remove_workspace(work, job.job_id, force=False)
    remove_workspace(work, job.job_id, force=True)
    assert list_workspaces(work) == []


@pytest.mark.parametrize("page", ["", "{", "[]", '{"state": 1}', '{"state": "made", "artifacts": 5}'])
def test_a_damaged_page_never_loses_work(repository: Repository, work: str, page: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    Path(place.path, "work.txt").write_text("hours")
    Path(work, job.job_id, PLAN_FILE).write_text(page)
    with pytest.raises(WorkDirUnusable, match="left it unchanged"):
        prepare_workdir(job, work, {})
    assert only(work).problem is not None
    with pytest.raises(WorkspaceKept):
        remove_workspace(work, job.job_id, force=False)
    assert Path(place.path, "work.txt").read_text() == "hours"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Fix it", "fix-it"),
        ("  ../../etc/passwd.lock @{-1}", "etc-passwd-lock-1"),
        ("정렬 문제", "job"),
        ("", "job"),
        ("x" * 500, "x" * 40),
        ("a " * 100, "-".join("a" * 20)),
    ],
)
def test_a_slug_is_a_name_that_a_branch_can_have(prompt: str, expected: str) -> None:
    assert slug(prompt) == expected
