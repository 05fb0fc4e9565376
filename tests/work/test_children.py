"""Jobs that register jobs, on a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mam.jobs.status import ENDED
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.work.children import is_descendant, open_descendants
from tests.cli.command import Mam

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)


def inside(mam: Mam, job: str, prompt: str = "a part", *words: str) -> str:
    return mam("register", prompt, "--agent", "shell", *words, MAM_JOB_ID=job).line


def family_of(mam: Mam, generations: int) -> list[str]:
    """A job, its child, and so on."""
    jobs = [mam.register()]
    for _ in range(generations):
        jobs.append(inside(mam, jobs[-1]))
    return jobs


def test_a_job_is_the_parent_of_what_it_registers(mam: Mam) -> None:
    parent, child, grandchild = family_of(mam, 2)
    assert mam.record(parent)["parent_id"] is None
    assert [mam.record(child)[name] for name in ("parent_id", "depth")] == [parent, 1]
    assert [mam.record(grandchild)[name] for name in ("parent_id", "depth")] == [child, 2]
    short = inside(mam, parent[:12])
    assert mam.record(short)["parent_id"] == parent


def test_three_deep_is_deep_enough_unless_configured(mam: Mam) -> None:
    *_, deepest = family_of(mam, 3)
    mam("register", "p", "--agent", "a", MAM_JOB_ID=deepest).failed(1, "MAM_JOB_ID", "3 deep", "max_depth")
    (mam.home / "config" / "mam").mkdir(parents=True)
    (mam.home / "config" / "mam" / "config.toml").write_text("max_depth = 4\n")
    deeper = inside(mam, deepest)
    assert mam.record(deeper)["depth"] == 4
    mam("register", "p", "--agent", "a", MAM_JOB_ID=deeper).failed(1, "4 deep")


def test_a_job_of_another_store_is_no_parent(mam: Mam, tmp_path: Path) -> None:
    job = mam.register()
    made = mam("register", "p", "--agent", "a", "--store", str(tmp_path / "other"), MAM_JOB_ID=job)
    assert made.code == 0
    assert "is not in this store" in made.stderr
    record = mam("get", made.out.strip(), "--store", str(tmp_path / "other")).json
    assert (record["parent_id"], record["depth"]) == (None, 0)


@pytest.mark.parametrize("end", [("complete",), ("fail", "--reason", "x"), ("cancel",)])
def test_an_ended_job_is_no_parent(mam: Mam, end: tuple[str, ...]) -> None:
    """`export $(mam pick --export)` leaves MAM_JOB_ID in the shell after the job has ended."""
    job = mam.register()
    mam("pick", "-s", "shell")
    mam(*end, job)
    for _ in range(5):
        made = mam("register", "p", "--agent", "shell", MAM_JOB_ID=job)
        assert (made.code, made.stderr.count("\n")) == (0, 1)
        assert f"MAM_JOB_ID names job {job}, which has ended" in made.stderr
        assert [mam.record(made.out.strip())[name] for name in ("parent_id", "depth")] == [None, 0]


def test_a_retry_keeps_its_parent(mam: Mam) -> None:
    parent, child = family_of(mam, 1)
    mam("cancel", child)
    again = mam("retry", child).line
    assert [mam.record(again)[name] for name in ("parent_id", "depth")] == [parent, 1]


def test_cancel_takes_the_tree_along(mam: Mam) -> None:
    parent, child, grandchild = family_of(mam, 2)
    done = inside(mam, parent)
    below_done = inside(mam, done)
    mam("complete", done)
    stranger = mam.register()
    ran = mam("cancel", "--tree", parent, "--reason", "enough")
    assert ran.code == 0, ran.stderr
    assert ran.out.splitlines()[0] == parent
    assert set(ran.out.splitlines()) == {parent, child, grandchild, below_done}
    assert {mam.status(job) for job in (parent, child, grandchild, below_done)} == {"cancelled"}
    assert mam.record(grandchild)["reason"] == "enough"
    assert mam.status(done) == "completed"
    assert mam.status(stranger) == "pending"


def test_cancel_alone_takes_only_what_was_named(mam: Mam) -> None:
    parent, child = family_of(mam, 1)
    assert mam("cancel", parent).line == parent
    assert mam.status(child) == "pending"


def test_the_tree_of_an_ended_job_can_still_be_cancelled(mam: Mam) -> None:
    parent, child = family_of(mam, 1)
    mam("complete", parent)
    assert mam("cancel", "--tree", parent).line == child
    assert mam.status(parent) == "completed"
    again = mam("cancel", "--tree", parent)
    assert (again.code, again.out) == (0, "")


def test_several_trees_are_cancelled_and_printed_as_json(mam: Mam) -> None:
    first, second = family_of(mam, 1), family_of(mam, 1)
    ran = mam("cancel", "--tree", "--json", first[0], first[1], second[0])
    assert ran.code == 0, ran.stderr
    assert [record["job_id"] for record in ran.json] == [first[0], first[1], second[0], second[1]]
    mam("cancel", "--tree", "nosuchjob").failed(1, "nosuchjob")


def test_an_attempt_applies_to_the_named_job_only(mam: Mam) -> None:
    parent, child = family_of(mam, 1)
    mam("pick", "-s", "shell")
    lost = mam("cancel", "--tree", parent, "--attempt", "7")
    assert lost.code == 4
    assert mam.status(parent) == "running"
    ran = mam("cancel", "--tree", parent, "--attempt", "1")
    assert ran.code == 0, ran.stderr
    assert mam.status(child) == "cancelled"


def test_waiting_for_a_job_of_the_own_label_is_warned_of(mam: Mam) -> None:
    parent, child = family_of(mam, 1)
    other = mam("register", "p", "--agent", "codex", MAM_JOB_ID=parent).line
    warned = mam("wait", child, "--timeout", "0", MAM_JOB_ID=parent)
    assert warned.code == 5
    assert "is for the label shell of this job" in warned.stderr
    assert "of this job" not in mam("wait", other, "--timeout", "0", MAM_JOB_ID=parent).stderr
    assert "of this job" not in mam("wait", child, "--timeout", "0").stderr
    assert "of this job" not in mam("wait", child, "--timeout", "0", MAM_JOB_ID="nosuch").stderr
    mam("complete", child)
    assert mam("wait", child, MAM_JOB_ID=parent).stderr == ""


# -- the rules themselves ----------------------------------------------------------------------------------------------


def made(registry: Registry, job_id: str, parent: str | None = None, **choices: Any) -> str:
    return registry.register(job_id=job_id, prompt="p", agent="a", parent_id=parent, **choices).job.job_id


def test_descent_is_followed_upward_and_downward() -> None:
    registry = Registry(MemoryStore())
    top, left, right, low = (made(registry, *names) for names in
                             (("top",), ("left", "top"), ("right", "top"), ("low", "left")))  # fmt: skip
    assert is_descendant(registry, low, top)
    assert not is_descendant(registry, top, low)
    assert not is_descendant(registry, top, top)
    assert not is_descendant(registry, right, left)
    assert not is_descendant(registry, "missing", top)
    registry.complete(left)
    assert set(open_descendants(registry, top)) == {right, low}
    assert registry.get(left).status in ENDED


def test_a_circle_of_parents_ends() -> None:
    registry = Registry(MemoryStore())
    made(registry, "one", "two")
    made(registry, "two", "one")
    assert is_descendant(registry, "one", "two")
    assert not is_descendant(registry, "one", "three")
    assert open_descendants(registry, "one") == ["two"]


def test_a_run_inside_a_job_is_its_child(mam: Mam) -> None:
    parent = mam.register("hand it on")
    ran = mam("run", "--json", "--", "true", MAM_JOB_ID=parent)
    assert ran.code == 0, ran.stderr
    assert (ran.json["parent_id"], ran.json["depth"]) == (parent, 1)
