"""A repository and a work directory, without the user's git settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.work.cleanup import Workspace, list_workspaces
from tests.work.repositories import Repository, make_repository


@pytest.fixture(autouse=True, name="world")
def world_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's git settings, and a directory without links in its name."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


@pytest.fixture(name="repository")
def repository_fixture(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repo")


@pytest.fixture(name="work")
def work_fixture(tmp_path: Path) -> str:
    return str(tmp_path / "work")


def only(work: str) -> Workspace:
    (held,) = list_workspaces(work)
    return held


def filter_that_waits(repository: Repository, world: Path) -> tuple[Path, Path]:
    """The user's own filter, which stops git in the middle of a checkout until it may continue."""
    arrived, go = world / "arrived", world / "go"
    os.mkfifo(arrived)
    os.mkfifo(go)
    repository.commit(".gitattributes", "*.txt filter=slow\n")
    # Only the first one to come waits: `go` is gone when it has been read from.
    script = f"if [ -p {go} ]; then echo x > {arrived}; read line < {go}; rm -f {go}; fi; cat"
    (world / ".gitconfig").write_text(f'[filter "slow"]\n\tsmudge = "{script}"\n\tclean = cat\n')
    return arrived, go


KILLED_AT = """
import os, signal, sys
from mam.work.git import command
from mam.work import job_dir
from mam.work.workdir import prepare_workdir
from tests.work.repositories import job_in

count, repository, work = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def counted(function):
    def step(*words, **more):
        global count
        count -= 1
        if count < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*words, **more)
    return step

command.Git._run = counted(command.Git._run)
job_dir.JobDirectory.write = counted(job_dir.JobDirectory.write)
job_dir.os.mkdir = counted(os.mkdir)
prepare_workdir(job_in(repository), work, {})
"""
