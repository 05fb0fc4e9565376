"""A worktree that is prepared by a killed process, by two processes at once, and by many."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mam.work.cleanup import remove_workspace
from mam.work.workdir import WorkDir, prepare_workdir
from tests.work.repositories import Repository, job_in
from tests.work.support import PATIENCE
from tests.work.workdir_fixtures import KILLED_AT, filter_that_waits, repository_fixture, work_fixture, world_fixture

__all__ = ["repository_fixture", "work_fixture", "world_fixture"]


def test_killed_before_any_step_it_is_whole_the_next_time(repository: Repository, work: str) -> None:
    """The steps are counted by the code itself, so that none is missed when there come to be more."""
    for count in range(100):
        argv = [sys.executable, "-c", KILLED_AT, str(count), str(repository.path), work]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        place = prepare_workdir(job_in(repository.path), work, {})
        assert Path(place.path, "sub/deep/file.txt").read_text() == "one\n"
        assert repository.git("status", "--porcelain", cwd=place.path) == ""
        assert len(repository.worktrees()) == 2
        assert repository.branches() == {"main", place.branch}
        remove_workspace(work, "abc12345", force=False)
        assert repository.branches() == {"main"}
        assert repository.worktrees() == [str(repository.path)]
    else:
        pytest.fail("it never came to an end")
    assert count > 10


def test_a_git_that_outlives_its_worker_keeps_others_out(repository: Repository, work: str, world: Path) -> None:
    """A worker is killed during a checkout; git continues, and no other process works on the directory meanwhile."""
    arrived, go = filter_that_waits(repository, world)
    argv = [sys.executable, "-c", KILLED_AT, "1000", str(repository.path), work]
    with subprocess.Popen(argv) as first:
        assert arrived.read_text() == "x\n"  # git is in the middle of it
        first.kill()
        first.wait(PATIENCE)
    found: list[WorkDir] = []
    second = threading.Thread(target=lambda: found.append(prepare_workdir(job_in(repository.path), work, {})))
    second.start()
    second.join(0.3)
    assert second.is_alive(), "it did not wait for the git of the killed worker"
    go.write_text("on\n")
    second.join(PATIENCE)
    assert Path(found[0].path, "sub/deep/file.txt").read_text() == "one\n"
    assert len(repository.worktrees()) == 2


def test_two_workers_that_prepare_the_same_place_get_the_same(repository: Repository, work: str) -> None:
    script = "import sys; from mam.work.workdir import prepare_workdir; from tests.work.repositories import job_in\n"
    script += "print(prepare_workdir(job_in(sys.argv[1]), sys.argv[2], {}).path)"
    argv = [sys.executable, "-c", script, str(repository.path), work]
    workers = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = {worker.communicate(timeout=PATIENCE)[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0] * 6
    assert len(answers) == 1
    assert len(repository.worktrees()) == 2


def test_many_jobs_of_one_repository_get_worktrees_at_once(repository: Repository, work: str) -> None:
    found: list[WorkDir] = []
    threads = [
        threading.Thread(
            target=lambda number=number: found.append(
                prepare_workdir(job_in(repository.path, job_id=f"job{number}"), work, {})
            )
        )
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len({place.path for place in found}) == len({place.branch for place in found}) == 16
    assert len(repository.worktrees()) == 17
