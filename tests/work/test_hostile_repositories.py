"""mam runs no command of a repository, whatever its configuration and its agent contain."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mam.errors import WorkDirUnusable, WorkspaceKept
from mam.work.cleanup import list_workspaces, remove_workspace
from mam.work.git import command
from mam.work.workdir import WorkDir, prepare_workdir
from tests.work.repositories import Repository, job_in, make_repository
from tests.work.support import PATIENCE
from tests.work.workdir_fixtures import filter_that_waits, only, repository_fixture, work_fixture, world_fixture

__all__ = ["repository_fixture", "work_fixture", "world_fixture"]


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that a repository's own command would make."""
    return tmp_path / "canary"


def _look_around(repository: Repository, work: str) -> WorkDir:
    """Everything that mam does with a repository."""
    job = job_in(repository.path)
    place = prepare_workdir(job, work, {})
    list_workspaces(work)
    Path(place.path, "sub/deep/file.txt").write_text("longer than before\n")
    list_workspaces(work)
    with pytest.raises(WorkspaceKept):
        remove_workspace(work, job.job_id, force=False)
    return place


def test_hooks_are_not_run(repository: Repository, work: str, canary: Path) -> None:
    names = "post-checkout post-index-change reference-transaction pre-auto-gc fsmonitor-watchman post-rewrite"
    for directory in (repository.path / ".git/hooks", repository.path / "hooks"):
        directory.mkdir(exist_ok=True)
        for name in names.split():
            (directory / name).write_text(f"#!/bin/sh\necho {name} >> {canary}\n")
            (directory / name).chmod(0o755)
    _look_around(repository, work)
    assert not canary.exists()
    repository.git("config", "core.hooksPath", str(repository.path / "hooks"))
    remove_workspace(work, "abc12345", force=True)
    _look_around(repository, work)
    remove_workspace(work, "abc12345", force=True)
    assert not canary.exists()


def test_commands_in_the_configuration_are_not_run(repository: Repository, work: str, canary: Path) -> None:
    command = f"touch {canary}; cat"
    repository.commit(".gitattributes", "* filter=evil diff=evil\n*.md filter=a=b\n")
    for key in (
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy",
        "diff.external", "filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "credential.helper",
        "alias.status", "alias.worktree", "pager.status", "gpg.program", "filter.a=b.smudge",
    ):  # fmt: skip
        repository.git("config", key, f"!{command}" if key.startswith("alias") else command)
    repository.git("config", "filter.evil.required", "true")
    repository.git("config", "core.untrackedCache", "true")
    (repository.path / "a.md").write_text("x")
    _look_around(repository, work)
    remove_workspace(work, "abc12345", force=True)
    assert not canary.exists()


def test_commands_in_included_and_worktree_configuration_are_not_run(
    repository: Repository, work: str, canary: Path
) -> None:
    repository.commit(".gitattributes", "* filter=evil\n*.txt filter=worse\n")
    included = repository.path / "included"
    included.write_text(f'[Filter "evil"]\n\tSMUDGE = touch {canary}; cat\n\tclean = touch {canary}; cat\n')
    repository.git("config", "include.path", str(included))
    repository.git("config", "extensions.worktreeConfig", "true")
    repository.git("config", "--worktree", "filter.worse.smudge", f"touch {canary}; cat")
    place = _look_around(repository, work)
    # What the agent itself adds where only its own worktree looks.
    repository.git("config", "--worktree", "filter.worse.clean", f"touch {canary}; cat", cwd=place.path)
    repository.git("config", "--worktree", "core.fsmonitor", f"touch {canary}", cwd=place.path)
    assert only(work).dirty
    assert not canary.exists()


def test_the_repository_of_another_user_is_left_alone(repository: Repository, work: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a directory away needs root")
    os.chown(repository.path, 12345, 12345)
    os.chown(repository.path / ".git", 12345, 12345)
    with pytest.raises(WorkDirUnusable, match="dubious ownership"):
        prepare_workdir(job_in(repository.path), work, {})


def test_a_configuration_that_points_elsewhere_is_refused(repository: Repository, work: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    repository.git("config", "core.worktree", str(tmp_path / "home"))
    with pytest.raises(WorkDirUnusable):
        prepare_workdir(job_in(repository.path), work, {})


def test_a_filter_process_is_not_run_either(repository: Repository, work: str, canary: Path) -> None:
    repository.commit(".gitattributes", "* filter=evil\n")
    repository.git("config", "filter.evil.process", f"touch {canary}")
    repository.git("config", "filter.evil.required", "true")
    _look_around(repository, work)
    assert not canary.exists()


def test_the_users_own_filters_are_run(repository: Repository, work: str, tmp_path: Path) -> None:
    repository.commit(".gitattributes", "*.txt filter=upper\n")
    (tmp_path / ".gitconfig").write_text('[filter "upper"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n')
    place = prepare_workdir(job_in(repository.path), work, {})
    assert Path(place.path, "sub/deep/file.txt").read_text() == "ONE\n"
    assert not only(work).dirty


def test_an_agents_own_git_directory_is_not_obeyed(repository: Repository, work: str, canary: Path) -> None:
    """The `.git` of a worktree is a file in the agent's reach; what it leads to by then does not count."""
    place = prepare_workdir(job_in(repository.path), work, {})
    evil = Repository(Path(place.path, "evil"))
    evil.path.mkdir()
    evil.git("init", "-q")
    evil.git("config", "core.fsmonitor", f"touch {canary}")
    Path(place.path, ".git").unlink()
    Path(place.path, ".git").write_text(f"gitdir: {evil.path}/.git\n")
    assert only(work).dirty
    prepare_workdir(job_in(repository.path), work, {})
    assert not canary.exists()


def test_a_submodule_is_not_entered_and_not_lost(
    repository: Repository, work: str, canary: Path, tmp_path: Path
) -> None:
    inner = make_repository(tmp_path / "inner")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "module")
    repository.git("commit", "-qm", "with a submodule")
    place = prepare_workdir(job_in(repository.path), work, {})
    assert place.note is not None
    assert "submodules" in place.note
    assert not only(work).dirty
    repository.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", cwd=place.path)
    module = Path(place.path, "module")
    repository.git("config", "core.fsmonitor", f"touch {canary}", cwd=module)
    (module / "sub/deep/file.txt").write_text("changed inside\n")
    assert only(work).dirty
    assert not canary.exists()


def test_variables_of_git_are_not_inherited(
    repository: Repository, work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "broken")
    place = prepare_workdir(job_in(repository.path), work, {})
    assert place.path in repository.worktrees()
    assert not only(work).dirty


def test_a_git_of_the_repository_itself_is_not_used(
    repository: Repository, work: str, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.path / "git").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (repository.path / "git").chmod(0o755)
    monkeypatch.chdir(repository.path)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    prepare_workdir(job_in(repository.path), work, {})
    assert not canary.exists()


def test_a_git_that_hangs_is_ended_with_what_it_started(repository: Repository, world: Path) -> None:
    arrived, _ = filter_that_waits(repository, world)
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.append(arrived.read_text()))
    listener.start()
    with pytest.raises(command.GitFailed, match="not done within"):
        command.discover(str(repository.path)).text("worktree", "add", str(world / "tree"), "-b", "x", seconds=2.0)
    listener.join(PATIENCE)
    assert heard == ["x\n"]


def test_a_git_command_with_too_much_output_is_ended(repository: Repository) -> None:
    with pytest.raises(command.GitFailed, match="too much"):
        command.discover(str(repository.path)).text("ls-files", limit=3)
