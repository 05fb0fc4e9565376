"""Killed before any step of ingesting or of writing an outcome: each file becomes one job, and nothing is lost."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from mam.inbox import deliver, ingest, submit
from mam.inbox.ledger import Ledger
from mam.jobs.status import Status
from tests.faults.killing import at_calls, at_statements, counted, kill_points
from tests.inbox.world import WHERE, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.killing import Count

SEAMS = ((ingest, "move"), (submit, "move"), (deliver, "move"), (Ledger, "_execute"))
PROMPT = "echo one\n"


def at_steps(count: Count) -> object:
    """Counts the steps of the store and of the inbox."""
    for owner, name in SEAMS:
        setattr(owner, name, counted(getattr(owner, name), count))
    return at_calls(count), at_statements(count)


def fresh(folder: Path, kind: str = "files") -> World:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return World(folder, kind)


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_killed_before_any_step_of_the_hand_over(quick_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three files: two are registered in one transaction, the third in the next."""
    monkeypatch.setattr(submit, "FILES_AT_ONCE", 2)
    names = ("x", "y", "z")

    def dropped() -> World:
        world = fresh(quick_path / "world", kind)
        for name in names:
            world.drop(f"{name}.prompt.md", PROMPT)
        return world

    def work(acknowledge: Callable[[str], None]) -> None:
        world.open().run_cycle()
        acknowledge("done")

    world = dropped()
    steps = 0
    for step, _acknowledged in kill_points(at_steps, work):
        steps += 1
        world.steady()
        jobs = world.all_jobs()
        assert [job.prompt for job in jobs] == ["echo one"] * 3, f"killed before step {step}"
        files = sorted(str((job.inbox or {})["file"]) for job in jobs)
        assert files == [f"{WHERE}/{name}.prompt.md" for name in names]
        assert world.files("inbox") == [f"{WHERE}/{name}.running.md" for name in names]
        for job in jobs:
            assert world.mirrored(job.job_id)["state"] == "queued"
            assert (world.root / "processed" / WHERE / job.job_id / "prompt.md").read_text() == PROMPT
        world.close()
        world = dropped()
    world.close()
    assert steps > 90, "the seam no longer reaches the steps"


@pytest.mark.parametrize("ending", ["completed", "error"])
def test_killed_before_any_step_of_the_way_out(quick_path: Path, ending: str) -> None:
    origin = World(_made(quick_path / "origin"), failure_archive=True)
    origin.drop("x.prompt.md", PROMPT)
    inbox = origin.open()
    inbox.run_cycle()
    registry, job = origin.registry(), origin.only_job()
    if ending == "completed":
        registry.complete(job.job_id, result="all well")
    else:
        registry.fail(job.job_id, reason="no luck")
    origin.close()
    folder = origin.folder
    saved = quick_path / "saved"
    shutil.copytree(folder, saved)

    def work(_acknowledge: Callable[[str], None]) -> None:
        world = World(folder, failure_archive=True)
        world.open().run_cycle()

    word = {"completed": "done", "error": "error"}[ending]
    steps = 0
    for step, _acknowledged in kill_points(at_steps, work):
        steps += 1
        world = World(folder, failure_archive=True)
        world.steady()
        assert world.files("inbox") == [], f"killed before step {step}"
        assert world.files("finished") == [f"{WHERE}/x.{word}.md"], f"killed before step {step}"
        outcome = (world.root / "finished" / WHERE / f"x.{word}.md").read_text()
        assert outcome.startswith(PROMPT)
        assert outcome.count(f"- job: {job.job_id}\n") == 1
        record = world.mirrored(job.job_id)
        assert record["state"] == {"completed": "succeeded", "error": "failed_final"}[ending]
        if ending == "error":
            assert record["archived_path"] == str(world.root / "failed" / WHERE / job.job_id / "x.prompt.md")
        assert world.only_job().status is Status(ending)
        world.close()
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)
    assert steps > 40, "the seam no longer reaches the steps"


def test_killed_while_something_is_refused(quick_path: Path) -> None:
    folder = quick_path / "world"
    world = fresh(folder)
    world.drop("x.prompt.md", b"\xff\xfe not text")

    def work(_acknowledge: Callable[[str], None]) -> None:
        world.open().run_cycle()

    for step, _acknowledged in kill_points(at_steps, work):
        world.steady()
        assert world.all_jobs() == []
        assert world.files("inbox") == [], f"killed before step {step}"
        assert world.files("finished") == [f"{WHERE}/x.error.md"], f"killed before step {step}"
        outcome = (world.root / "finished" / WHERE / "x.error.md").read_bytes()
        assert outcome.startswith(b"\xff\xfe not text")
        assert outcome.count(b"# Outcome: error") == 1
        world.close()
        world = fresh(folder)
        world.drop("x.prompt.md", b"\xff\xfe not text")


def test_killed_again_and_again_over_its_own_wreck(quick_path: Path) -> None:
    """A second file has the same name as an ended one: a row is for a file, whatever its name."""
    world = fresh(quick_path / "world")
    world.drop("x.prompt.md", PROMPT)
    world.open().run_cycle()
    world.registry().complete(world.only_job().job_id)
    world.steady()
    world.drop("x.prompt.md", PROMPT)

    def work(_acknowledge: Callable[[str], None]) -> None:
        world.open().run_cycle()

    kills = sum(1 for _ in kill_points(at_steps, work)) - 1  # the last one is not killed
    assert kills > 30
    assert [str(job.status) for job in world.all_jobs()] == ["completed", "pending"]
    assert world.files("inbox") == [f"{WHERE}/x.running.md"]
    assert world.files("finished") == [f"{WHERE}/x.done.md"]
    world.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
