"""Files that are found together are registered together, and a bad one does not affect the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.inbox import submit
from mam.stores.files.store import FilesStore
from tests.inbox.world import WHERE, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mam.jobs.record import Job


@pytest.fixture(params=["files", "sqlite"])
def either(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(tmp_path, request.param)
    yield world
    world.close()


def test_a_bad_file_does_not_stop_the_others(either: World) -> None:
    bad: dict[str, str | bytes] = {
        "after": "---\nafter: 0123456789abcdef\n---\ndo it",
        "empty": "",
        "key": "---\npriority: high\n---\ndo it",
        "text": b"\xff\xfe",
    }
    for name, content in bad.items():
        either.drop(f"{name}.prompt.md", content)
    for name in ("a", "m", "z"):
        either.drop(f"{name}.prompt.md", name)

    either.steady()

    assert sorted(job.prompt for job in either.all_jobs()) == ["a", "m", "z"]
    assert either.files("inbox") == [f"{WHERE}/{name}.running.md" for name in ("a", "m", "z")]
    assert either.files("finished") == [f"{WHERE}/{name}.error.md" for name in sorted(bad)]


def test_a_file_with_a_dependency_is_registered_with_the_others(either: World) -> None:
    either.drop("first.prompt.md", "first")
    either.steady()
    first = either.only_job()
    either.drop("then.prompt.md", f"---\nafter: {first.job_id[:12]}\n---\nthen")
    either.drop("too.prompt.md", "too")

    either.steady()

    found = {job.prompt: job for job in either.all_jobs()}
    assert (found["then"].after, found["then"].waiting_for) == ([first.job_id], "dependency")
    assert found["too"].status == "pending"


def test_only_so_much_is_in_memory_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    acts: list[int] = []
    register_all = FilesStore.register_all

    def watched(self: FilesStore, drafts: Sequence[Job]) -> list[Job]:
        acts.append(len(drafts))
        return register_all(self, drafts)

    monkeypatch.setattr(FilesStore, "register_all", watched)
    monkeypatch.setattr(submit, "BYTES_AT_ONCE", 1000)
    monkeypatch.setattr(submit, "FILES_AT_ONCE", 4)
    for number in range(9):
        world.drop(f"small{number}.prompt.md", f"{number}")
    world.steady()
    assert acts == [4, 4, 1]
    for number in range(3):
        world.drop(f"large{number}.prompt.md", "x" * 600)
    inbox = world.steady()
    assert acts == [4, 4, 1, 2, 1]
    assert len(world.all_jobs()) == 12
    assert {job.prompt for job in inbox.jobs.values()} == {""}, "the follower of a job does not need its prompt"


@pytest.mark.parametrize("kept", ["row", "claim"])
def test_the_outcome_of_a_job_that_was_archived_early_is_written(world: World, kept: str) -> None:
    """The watcher was away, or it was killed right after it had registered the job."""
    world.drop("x.prompt.md", "echo one\n")
    inbox = world.open()
    inbox.run_cycle()
    registry, job = world.registry(), world.only_job()
    if kept == "claim":
        inbox._ledger._execute([("UPDATE claim SET state = 'claimed'", ())])
    registry.complete(job.job_id, result="all well")
    registry.register(prompt="a newer one", agent="shell")
    assert registry.archive([job.job_id]) == [job.job_id]

    world.steady()

    assert world.files("inbox") == []
    assert world.files("finished") == [f"{WHERE}/x.done.md"]
    outcome = (world.root / "finished" / WHERE / "x.done.md").read_text()
    assert outcome.startswith("echo one\n")
    assert "all well" in outcome
    assert world.mirrored(job.job_id)["state"] == "succeeded"
    world.close()
    (world.root / ".queue" / "jobs" / job.job_id / "state").unlink()
    world.steady()
    assert world.mirrored(job.job_id)["state"] == "succeeded"
    assert world.complaints == []
