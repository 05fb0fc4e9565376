"""`mam workspaces`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.jobs.record import parse_job
from mam.work.state_dirs import work_directory
from mam.work.workdir import WorkDir, prepare_workdir
from tests.cli.command import Mam
from tests.work.commands import mam
from tests.work.repositories import Repository, make_repository

__all__ = ["mam"]


@pytest.fixture
def repository(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> Repository:
    mam.here.rmdir()
    monkeypatch.setenv("HOME", mam.env["HOME"])
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return make_repository(mam.here)


def prepared(mam: Mam, job: str, workspace: str) -> WorkDir:
    record = mam.record(job)
    return prepare_workdir(parse_job({**record, "workspace": workspace}, "x"), work_directory(mam("where").line), {})


def test_they_are_listed_and_removed(mam: Mam, repository: Repository) -> None:
    tree, fresh = mam.register("in a tree"), mam.register("afresh")
    place = prepared(mam, tree, "worktree")
    empty = prepared(mam, fresh, "fresh")
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in mam("workspaces").out.splitlines()}
    assert rows == {
        tree: ["worktree", "clean", place.branch, place.path],
        fresh: ["fresh", "clean", "-", empty.path],
    }
    repository.commit("new.txt", "x", cwd=place.path)
    Path(place.path, "more.txt").write_text("x")
    (row,) = [row for row in mam("workspaces", "--json").json if row["job_id"] == tree]
    assert (row["dirty"], row["unpushed"], row["branch"], row["problem"]) == (True, 1, place.branch, None)
    assert "dirty,unpushed:1" in mam("workspaces").out
    mam("workspaces", "--remove", tree).failed(1, "not committed", "no remote", "--force")
    ran = mam("workspaces", "--remove", tree[:8], "--force")
    assert ran.line == tree
    assert "was kept" in ran.stderr
    assert mam("workspaces", "--remove", fresh).line == fresh
    assert mam("workspaces").out == ""
    assert place.branch in repository.branches()


def test_the_place_of_a_running_job_stays(mam: Mam, repository: Repository) -> None:
    job = mam.register("run")
    prepared(mam, job, "worktree")
    mam("pick", "-s", "shell")
    mam("workspaces", "--remove", job, "--force").failed(1, "is running")
    mam("complete", job)
    assert mam("workspaces", "--remove", job).line == job


def test_a_job_that_the_store_forgot_can_be_cleared_away(mam: Mam, repository: Repository) -> None:
    job = mam.register("forgotten")
    prepared(mam, job, "fresh")
    os.unlink(mam.here / f".mam/jobs/{job}.json")
    assert mam("workspaces", "--remove", job).line == job


def test_wrong_arguments_are_refused(mam: Mam) -> None:
    mam("init")
    mam("workspaces", "--force").failed(2, "--remove")
    mam("workspaces", "--remove", "nobody").failed(1, "nobody")
    job = mam.register()
    mam("workspaces", "--remove", job).failed(1, "none on this host")
    mam("workspaces", "--remove", "../x").failed(1)
