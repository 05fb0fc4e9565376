"""The check of expected artifacts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.artifacts import check_artifacts
from mam.errors import ArtifactMissing
from tests.unit.jobs import pending


def _check(workdir: Path | None, *artifacts: str) -> None:
    job = pending(workdir=None if workdir is None else str(workdir))
    check_artifacts(job.replace(expected_artifacts=list(artifacts)))


def _missing(workdir: Path | None, artifact: str) -> str:
    with pytest.raises(ArtifactMissing) as refused:
        _check(workdir, artifact)
    assert artifact in str(refused.value)
    assert refused.value.exit_code == 1
    return str(refused.value)


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "work/out/deep").mkdir(parents=True)
    (tmp_path / "work/out/report.md").write_text("done")
    (tmp_path / "work/out/deep/empty").touch()
    (tmp_path / "secret.txt").write_text("not yours")
    return tmp_path / "work"


@pytest.mark.parametrize("artifact", ["out/report.md", "./out/report.md", "out//report.md"])
def test_a_file_that_is_there_will_do(workdir: Path, artifact: str) -> None:
    _check(workdir, artifact)


def test_a_job_that_promised_nothing_has_nothing_missing() -> None:
    _check(None)


def test_the_first_missing_one_is_named(workdir: Path) -> None:
    with pytest.raises(ArtifactMissing, match=r"out/plan\.md is not there"):
        _check(workdir, "out/report.md", "out/plan.md", "out/more.md")


@pytest.mark.parametrize("artifact", ["nowhere/report.md", "out/report.md/x", "out/deep", "out", ".", "", "./"])
def test_an_artifact_that_is_no_file_is_missing(workdir: Path, artifact: str) -> None:
    _missing(workdir, artifact)


@pytest.mark.parametrize("artifact", ["../secret.txt", "out/../../secret.txt", "..", "out/../out/report.md"])
def test_no_artifact_is_accepted_above_the_directory(workdir: Path, artifact: str) -> None:
    assert "inside the job's directory" in _missing(workdir, artifact)


def test_an_empty_file_is_nothing(workdir: Path) -> None:
    assert "is empty" in _missing(workdir, "out/deep/empty")


def test_a_second_name_of_a_file_is_a_file(workdir: Path) -> None:
    (workdir / "same.md").hardlink_to(workdir / "out/report.md")

    _check(workdir, "same.md")


def test_a_link_is_not_a_file(workdir: Path) -> None:
    (workdir / "link.md").symlink_to(workdir / "out/report.md")
    (workdir / "dangling.md").symlink_to("nowhere")

    assert "link" in _missing(workdir, "link.md")
    assert "link" in _missing(workdir, "dangling.md")


def test_no_link_on_the_way_is_followed(workdir: Path) -> None:
    (workdir / "up").symlink_to(workdir.parent)
    (workdir / "aside").symlink_to("out")

    _missing(workdir, "up/secret.txt")
    _missing(workdir, "aside/report.md")


def test_a_pipe_is_not_a_file_and_is_not_waited_for(workdir: Path) -> None:
    os.mkfifo(workdir / "pipe")

    assert "regular file" in _missing(workdir, "pipe")


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in _missing(tmp_path / "gone", "report.md")


def test_without_a_directory_the_current_one_counts(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workdir)

    _check(None, "out/report.md")
    _missing(None, "report.md")


def test_an_absolute_path_of_an_old_record_is_checked(workdir: Path) -> None:
    _check(workdir, str(workdir / "out/report.md"))
    _missing(workdir, str(workdir / "out/plan.md"))


@pytest.mark.parametrize("artifact", ["a\0b", "\ud800", "x" * 5000])
def test_a_name_that_no_file_can_have_is_missing(workdir: Path, artifact: str) -> None:
    with pytest.raises(ArtifactMissing):
        _check(workdir, artifact)


def test_a_directory_that_cannot_be_is_missing_too() -> None:
    with pytest.raises(ArtifactMissing, match="no directory can be called"):
        check_artifacts(pending(artifacts=["report.md"]).replace(workdir="/tmp/a\0b"))


def test_a_check_leaves_no_descriptor_open(workdir: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for artifact in ("out/report.md", "out/deep/empty", "nowhere/x", "out/report.md/x", "out", ".."):
        try:
            _check(workdir, artifact)
        except ArtifactMissing:
            continue

    assert len(os.listdir("/dev/fd")) == before
