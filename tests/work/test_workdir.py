"""Where a job runs: the directory that it names, or a fresh one, created once and never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.errors import WorkDirMissing, WorkDirUnusable, WorkspaceKept
from mam.work.cleanup import list_workspaces, remove_workspace
from mam.work.workdir import WorkDir, prepare_workdir
from tests.unit.jobs import pending
from tests.work.repositories import job_in
from tests.work.workdir_fixtures import only, repository_fixture, work_fixture, world_fixture

__all__ = ["repository_fixture", "work_fixture", "world_fixture"]


def test_a_workdir_is_the_one_of_the_job(tmp_path: Path, work: str) -> None:
    place = prepare_workdir(job_in(tmp_path, "workdir"), work, {})
    assert place == WorkDir(path=str(tmp_path), kind="workdir")
    assert not os.path.exists(work)


def test_a_link_to_a_workdir_is_followed_once_and_for_all(tmp_path: Path, work: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert prepare_workdir(job_in(tmp_path / "link", "workdir"), work, {}).path == str(tmp_path / "real")


def test_a_missing_workdir_lets_the_job_wait(tmp_path: Path, work: str) -> None:
    job = job_in(tmp_path / "gone", "workdir")
    with pytest.raises(WorkDirMissing, match="gone is not there"):
        prepare_workdir(job, work, {})
    (tmp_path / "gone").mkdir()
    assert prepare_workdir(job, work, {}).path == str(tmp_path / "gone")


def test_a_file_is_no_place(tmp_path: Path, work: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WorkDirUnusable, match="not a directory"):
        prepare_workdir(job_in(tmp_path / "file", "workdir"), work, {})
    with pytest.raises(WorkDirMissing):
        prepare_workdir(job_in(tmp_path / "file/below", "workdir"), work, {})


@pytest.mark.parametrize("workdir", ["relative", "", "/tmp/../etc", "/a\0b"])
def test_a_workdir_that_cannot_be_is_broken(workdir: str, work: str) -> None:
    with pytest.raises(WorkDirUnusable):
        prepare_workdir(pending().replace(workdir=workdir), work, {})


def test_an_old_record_without_a_workdir_runs_where_the_worker_is(
    tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = prepare_workdir(pending(), work, {})
    assert place.path == str(tmp_path)
    assert place.note is not None
    assert "no directory" in place.note


def test_paths_of_another_host_are_mapped_name_by_name(tmp_path: Path, work: str) -> None:
    (tmp_path / "here/project").mkdir(parents=True)
    (tmp_path / "nearer").mkdir()
    job = pending(workdir="/far/away/project", origin_host="elsewhere", workspace="workdir")
    here = str(tmp_path / "here")
    assert prepare_workdir(job, work, {"/far/away": here}).path == f"{here}/project"
    assert prepare_workdir(job, work, {"/far/away/": f"{here}/"}).path == f"{here}/project"
    assert prepare_workdir(job, work, {"/far/away": here, "/far/away/project": str(tmp_path / "nearer")}).path == str(
        tmp_path / "nearer"
    )
    for mapping in ({}, {"/far/aw": here}, {"/other": here}):
        with pytest.raises(WorkDirMissing, match=r"registered on elsewhere.*\[workdirs\]"):
            prepare_workdir(job, work, mapping)


def test_paths_of_this_host_are_never_mapped(tmp_path: Path, work: str) -> None:
    job = pending(workdir=str(tmp_path), origin_host=os.uname().nodename, workspace="workdir")
    assert prepare_workdir(job, work, {str(tmp_path): "/nowhere"}).path == str(tmp_path)


def test_a_path_that_both_hosts_have_needs_no_mapping(tmp_path: Path, work: str) -> None:
    job = pending(workdir=str(tmp_path), origin_host="elsewhere", workspace="workdir")
    assert prepare_workdir(job, work, {}).path == str(tmp_path)


# -- fresh -----------------------------------------------------------------------------------------------------------


def test_a_fresh_directory_is_made_once_and_continued(tmp_path: Path, work: str) -> None:
    job = job_in("/nowhere/at/all", "fresh")
    place = prepare_workdir(job, work, {})
    assert (place.kind, os.listdir(place.path)) == ("fresh", [])
    assert os.stat(place.path).st_mode & 0o777 == 0o700
    Path(place.path, "half.txt").write_text("half")
    assert prepare_workdir(job.replace(attempt=2), work, {}) == place
    assert os.listdir(place.path) == ["half.txt"]
    held = only(work)
    assert (held.job_id, held.kind, held.dirty, held.path) == (job.job_id, "fresh", True, place.path)
    with pytest.raises(WorkspaceKept, match="holds files"):
        remove_workspace(work, job.job_id, force=False)
    assert remove_workspace(work, job.job_id, force=True) is None
    assert list_workspaces(work) == []
    assert os.listdir(work) == []


def test_an_empty_fresh_directory_goes_without_force(work: str) -> None:
    job = job_in("/nowhere", "fresh")
    prepare_workdir(job, work, {})
    remove_workspace(work, job.job_id, force=False)
    assert list_workspaces(work) == []


def test_a_fresh_directory_that_became_a_link_is_not_followed(tmp_path: Path, work: str) -> None:
    job = job_in("/nowhere", "fresh")
    place = prepare_workdir(job, work, {})
    os.rmdir(place.path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    os.symlink(tmp_path / "precious", place.path)
    with pytest.raises(WorkDirUnusable, match="not a directory any more"):
        prepare_workdir(job, work, {})


def test_other_users_cannot_prepare_the_work_directory(work: str) -> None:
    os.mkdir(work)
    os.chmod(work, 0o777)
    with pytest.raises(WorkDirUnusable, match="can be written by others"):
        prepare_workdir(job_in("/nowhere", "fresh"), work, {})
