"""mam removes a workspace only if no work is lost, and otherwise reports why it remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mam.errors import WorkDirUnusable, WorkspaceKept
from mam.work.cleanup import list_workspaces, remove_workspace
from mam.work.job_dir import JobDirectory
from mam.work.workdir import prepare_workdir
from tests.work.repositories import Repository, job_in
from tests.work.support import PATIENCE
from tests.work.workdir_fixtures import KILLED_AT, only, repository_fixture, work_fixture, world_fixture

__all__ = ["repository_fixture", "work_fixture", "world_fixture"]


def test_a_clean_worktree_goes_with_its_branch(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    prepare_workdir(job, work, {})
    held = only(work)
    assert (held.kind, held.dirty, held.unpushed, held.problem) == ("worktree", False, 0, None)
    assert remove_workspace(work, job.job_id, force=False) is None
    assert repository.branches() == {"main"}
    assert repository.worktrees() == [str(repository.path)]
    assert os.listdir(work) == []


@pytest.mark.parametrize("change", ["untracked", "edited", "deleted", "staged"])
def test_a_dirty_worktree_is_kept(repository: Repository, work: str, change: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    file = Path(place.path, "sub/deep/file.txt")
    match change:
        case "untracked":
            Path(place.path, "new.txt").write_text("x")
        case "edited":
            file.write_text("two\n")
        case "deleted":
            file.unlink()
        case "staged":
            file.write_text("two\n")
            repository.git("add", ".", cwd=place.path)
    assert only(work).dirty
    with pytest.raises(WorkspaceKept, match=r"not committed.*--force"):
        remove_workspace(work, job.job_id, force=False)
    assert os.path.isdir(place.path)
    assert remove_workspace(work, job.job_id, force=True) is None
    assert repository.branches() == {"main"}


def test_commits_that_are_nowhere_else_survive_even_force(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    commit = repository.commit("done.txt", "done", cwd=place.path)
    assert (only(work).dirty, only(work).unpushed) == (False, 1)
    with pytest.raises(WorkspaceKept, match="1 of its commits"):
        remove_workspace(work, job.job_id, force=False)
    note = remove_workspace(work, job.job_id, force=True)
    assert note is not None
    assert "was kept" in note
    assert repository.git("rev-parse", place.branch or "") == commit
    assert repository.worktrees() == [str(repository.path)]


def test_commits_that_were_merged_or_pushed_need_no_force(repository: Repository, work: str, tmp_path: Path) -> None:
    for job_id, how in (("merged01", "merge"), ("pushed01", "push")):
        job = job_in(repository.path, job_id=job_id)
        place = prepare_workdir(job, work, {})
        repository.commit(f"{how}.txt", "done", cwd=place.path)
        if how == "merge":
            repository.git("merge", "-q", str(place.branch))
        else:
            repository.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
            repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
            repository.git("push", "-q", "-u", "origin", str(place.branch), cwd=place.path)
        assert only(work).unpushed == 0
        assert remove_workspace(work, job_id, force=False) is None
        assert repository.branches() == {"main"}
        assert f'branch "{place.branch}"' not in (repository.path / ".git/config").read_text()


def test_commits_on_no_branch_count_too(repository: Repository, work: str) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    repository.git("checkout", "-q", "--detach", cwd=place.path)
    repository.commit("loose.txt", "x", cwd=place.path)
    assert only(work).unpushed == 1


def test_an_ignored_artifact_is_not_lost(repository: Repository, work: str) -> None:
    repository.commit(".gitignore", "out/\n")
    job = job_in(repository.path / "sub", artifacts=["out/report.md"])
    place = prepare_workdir(job, work, {})
    assert not only(work).dirty
    Path(place.path, "out").mkdir()
    Path(place.path, "out/other.tmp").write_text("x")
    assert not only(work).dirty
    Path(place.path, "out/report.md").write_text("what it was all for")
    assert only(work).dirty


def test_what_an_agent_locked_away_is_removed_and_links_are_not_followed(
    repository: Repository, work: str, tmp_path: Path
) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    (tmp_path / "precious").chmod(0o750)
    Path(place.path, "link").symlink_to(tmp_path / "precious")
    Path(place.path, "locked/in").mkdir(parents=True)
    Path(place.path, "locked/in/file").write_text("x")
    Path(place.path, "locked/in").chmod(0)
    Path(place.path, "locked").chmod(0o500)
    remove_workspace(work, job.job_id, force=True)
    assert list_workspaces(work) == []
    assert (tmp_path / "precious/file").read_text() == "x"
    assert (tmp_path / "precious").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_worktree_that_became_something_else_is_refused_and_can_be_cleared(
    repository: Repository, work: str, tmp_path: Path, kind: str
) -> None:
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    subprocess.run(["rm", "-rf", place.path], check=True)
    if kind == "link":
        os.symlink(tmp_path / "precious", place.path)
    else:
        Path(place.path).write_text("x")
    with pytest.raises(WorkDirUnusable, match="not a directory"):
        prepare_workdir(job, work, {})
    with pytest.raises(WorkspaceKept):
        remove_workspace(work, job.job_id, force=False)
    remove_workspace(work, job.job_id, force=True)
    assert list_workspaces(work) == []
    assert repository.worktrees() == [str(repository.path)]
    assert (tmp_path / "precious/file").read_text() == "x"


_REMOVED_AT = (
    KILLED_AT.replace(
        "prepare_workdir(job_in(repository), work, {})", "remove_workspace(work, 'abc12345', force=False)"
    )
    .replace("from mam.work.workdir import prepare_workdir", "from mam.work.cleanup import remove_workspace")
    .replace("job_dir.os.mkdir = counted(os.mkdir)", "cleanup.remove_tree = counted(job_dir.remove_tree)")
    .replace("from mam.work import job_dir", "from mam.work import cleanup, job_dir")
)


def test_a_removal_that_was_cut_off_is_finished(repository: Repository, work: str) -> None:
    assert _REMOVED_AT.count("remove") == 4, "a replacement found nothing"
    for count in range(100):
        prepare_workdir(job_in(repository.path), work, {})
        argv = [sys.executable, "-c", _REMOVED_AT, str(count), str(repository.path), work]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        if count % 2:  # either it is removed again, or the job comes back
            assert Path(prepare_workdir(job_in(repository.path), work, {}).path, "sub/deep/file.txt").exists()
        remove_workspace(work, "abc12345", force=False)
        assert list_workspaces(work) == []
        assert repository.worktrees() == [str(repository.path)]
        assert repository.branches() == {"main"}
    else:
        pytest.fail("it never came to an end")
    assert count > 5


def test_there_is_nothing_to_remove(work: str) -> None:
    with pytest.raises(WorkspaceKept, match="none on this host"):
        remove_workspace(work, "abc12345", force=True)
    assert list_workspaces(work) == []


def test_strangers_in_the_work_directory_are_left_alone(work: str, tmp_path: Path) -> None:
    os.mkdir(work)
    for name in ("not an id", ".hidden", "abc12345"):
        Path(work, name).mkdir()
    Path(work, "file").write_text("x")
    assert list_workspaces(work) == []
    assert JobDirectory(work, "abc12345").read() is None
