"""A move into the archive that was killed half way has not happened: nobody sees the job twice."""

from __future__ import annotations

import os
from pathlib import Path

from mam.stores.files.archive import Archive
from mam.stores.port import Kept
from tests.files.conftest import Place


def test_a_job_that_is_in_both_places_is_in_the_registry(tmp_path: Path) -> None:
    place = Place(tmp_path / "jobs")
    registry = place.open()
    job = registry.register(prompt="p", agent="codex").job
    registry.register(prompt="the newest", agent="codex")
    ended = registry.complete(job.job_id)
    with Archive(str(place.path / ".store")) as archive:
        archive.put([Kept(job=ended, events=registry.events(job.job_id))])

    assert list(registry.store.archive_contents()) == []
    assert registry.store.archived(job.job_id) is None

    assert registry.archive([job.job_id]) == [job.job_id]
    assert [kept.job.job_id for kept in registry.store.archive_contents()] == [job.job_id]


def test_a_look_into_the_archive_leaves_nothing_open(tmp_path: Path) -> None:
    """A connection ends with the garbage collector otherwise, and a server that is asked often runs out of files."""
    place = Place(tmp_path / "jobs")
    registry = place.open()
    job = registry.register(prompt="p", agent="codex").job
    registry.register(prompt="the newest", agent="codex")
    registry.complete(job.job_id)
    registry.archive([job.job_id])
    before = _open_below(tmp_path)
    for _ in range(5):
        assert registry.store.archived(job.job_id) is not None
        assert registry.store.archived_with_prefix(job.job_id[:4], 1) == [job.job_id]
        assert len(list(registry.store.archive_contents())) == 1
        assert registry.store.newest(job.job_id) is not None
    assert _open_below(tmp_path) == before


def _open_below(directory: Path) -> list[str]:
    """Only what this test opened: what others left behind is closed by the garbage collector at any time."""
    links = (Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd"))
    targets = (str(os.readlink(link)) for link in links if link.is_symlink())
    return sorted(target for target in targets if target.startswith(str(directory)))
