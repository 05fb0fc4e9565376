"""Reading a log: no lock, no registry, and no trouble with what is broken in it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from mam.audit.log import iter_lines, job_dir, list_jobs, read_meta, read_status
from mam.errors import BadInput
from tests.audit.support import files_registry, history_lines

if TYPE_CHECKING:
    from pathlib import Path

    from mam.registry import Registry


def test_history_outlives_the_registry(tmp_path: Path, logs_dir: Path) -> None:
    registry = files_registry(tmp_path / "jobs", logs_dir)
    job = registry.register(prompt="정렬", agent="a").job
    registry.cancel(job.job_id)
    registry.store.close()
    shutil.rmtree(tmp_path / "jobs")
    assert [line["event"] for line in history_lines(logs_dir, job.job_id)] == [
        "registered",
        "status_changed",
        "published",
    ]
    meta = read_meta(str(logs_dir), job.job_id)
    assert meta is not None
    assert meta["prompt"] == "정렬"
    assert read_status(str(logs_dir), job.job_id) == "cancelled"
    assert list_jobs(str(logs_dir)) == [job.job_id]


def test_a_rebuilt_registry_appends_to_the_old_history(tmp_path: Path, logs_dir: Path) -> None:
    for prompt in ("first", "second"):
        registry = files_registry(tmp_path / "jobs", logs_dir)
        registry.register(prompt=prompt, agent="a", job_id="same")
        registry.store.close()
        shutil.rmtree(tmp_path / "jobs")
    assert [line["event"] for line in history_lines(logs_dir, "same")] == ["registered", "registered"]


def test_nothing_is_there_for_a_job_without_a_history(logs_dir: Path) -> None:
    assert list_jobs(str(logs_dir)) == []
    assert list(iter_lines(str(logs_dir), "nobody")) == []
    assert read_meta(str(logs_dir), "nobody") is None
    assert read_status(str(logs_dir), "nobody") is None


@pytest.mark.parametrize("job_id", ["../x", "a/b", "", ".", "..", ".lock", "x" * 65, "a\0b"])
def test_an_invalid_id_is_rejected(logs_dir: Path, job_id: str) -> None:
    with pytest.raises(BadInput):
        job_dir(str(logs_dir), job_id)
    with pytest.raises(BadInput):
        read_meta(str(logs_dir), job_id)


def test_only_directories_with_an_id_for_a_name_are_jobs(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    (logs_dir / "file").write_text("")
    (logs_dir / "not an id").mkdir()
    (logs_dir / "link").symlink_to(logs_dir / job.job_id)
    assert list_jobs(str(logs_dir)) == [job.job_id]


def test_a_broken_line_is_named_and_passed_over(
    registry: Registry, logs_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = registry.register(prompt="p", agent="a").job
    with (logs_dir / job.job_id / "events.ndjson").open("ab") as file:
        file.write(b'not json\n[1]\n\xff\xfe\n{"event": "received"}\n')
    assert [line["event"] for line in history_lines(logs_dir, job.job_id)] == ["registered", "received"]
    assert [f"line {number}" in caplog.text for number in (1, 2, 3, 4, 5)] == [False, True, True, True, False]
    assert "events.ndjson" in caplog.text


def test_the_line_that_is_being_written_is_passed_over_in_silence(
    registry: Registry, logs_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = registry.register(prompt="p", agent="a").job
    with (logs_dir / job.job_id / "events.ndjson").open("ab") as file:
        file.write(b'{"event": "recei')
    assert [line["event"] for line in history_lines(logs_dir, job.job_id)] == ["registered"]
    assert caplog.records == []


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"status": 7}', b"\0" * 30])
def test_a_broken_status_is_no_status(registry: Registry, logs_dir: Path, content: bytes) -> None:
    job = registry.register(prompt="p", agent="a").job
    (logs_dir / job.job_id / "status.json").write_bytes(content)
    assert read_status(str(logs_dir), job.job_id) is None
    (logs_dir / job.job_id / "meta.json").write_bytes(b"[]")
    assert read_meta(str(logs_dir), job.job_id) is None


def test_links_are_not_followed(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    (logs_dir / "linked").symlink_to(logs_dir / job.job_id)
    assert read_meta(str(logs_dir), "linked") is None
    assert list(iter_lines(str(logs_dir), "linked")) == []


def test_directories_in_place_of_log_files_are_empty(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    folder = logs_dir / job.job_id
    for name in ("events.ndjson", "meta.json", "status.json"):
        (folder / name).unlink()
        (folder / name).mkdir()
    assert list(iter_lines(str(logs_dir), job.job_id)) == []
    assert read_meta(str(logs_dir), job.job_id) is None
    assert read_status(str(logs_dir), job.job_id) is None
