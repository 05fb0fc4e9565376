"""The power fails at any step of a recorded life: every possible disk holds all acknowledged acts."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from mam.stores.files.records import read_stamp
from tests.faults.amount import DOSE
from tests.faults.power import power_cuts, written
from tests.faults.power_cuts import cut_everywhere
from tests.faults.recording import ROOT, Made, Renamed, Said, Step, Synced, Wrote, recorded
from tests.faults.side_files import kept
from tests.faults.store_kinds import HOMES, Home

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

ACTS = 8


@pytest.mark.parametrize("seed", range(2, DOSE + 2))
@pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))
def test_acknowledged_acts_are_on_every_disk_that_a_power_cut_may_leave(folder: Path, home: Home, seed: int) -> None:
    assert cut_everywhere(home, folder, seed, ACTS) > 500, "the recorder no longer sees the store"


@pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))
def test_what_is_kept_beside_the_journal_is_old_or_new_after_a_cut(folder: Path, home: Home) -> None:
    """Secrets and pauses: each is acknowledged by its own name, and is there on every disk from then on."""
    root, after = folder / "root", folder / "after"
    root.mkdir()
    steps = recorded(["tests.faults.side_files", home.name, str(root / "place")], root)
    for cutting in power_cuts(steps, random.Random(1), mixes=1):
        if not cutting.heard:
            continue
        written(cutting.disk, after)
        store = home.open(after / "place")
        assert set(cutting.heard) <= {f"{name}\n" for name in kept(store)}, cutting.told
        store.close()
        shutil.rmtree(after)


def test_a_registration_has_its_record_file_on_every_disk(folder: Path) -> None:
    """Also before mam has acted again: `register` syncs file and directory before it answers."""
    root, after = folder / "root", folder / "after"
    root.mkdir()
    steps = recorded(["tests.faults.register_loop", str(root / "place")], root)
    heard = 0
    for cutting in power_cuts(steps, random.Random(1)):
        written(cutting.disk, after)
        for job_id in "".join(cutting.heard).split():
            heard += 1
            text = (after / "place/jobs" / f"{job_id}.json").read_bytes()
            assert read_stamp(text) is not None, cutting.told
        shutil.rmtree(after)
    assert heard > 50


# -- the judge of disks, judged ----------------------------------------------------------------------------------------


def disks(*steps: Step) -> list[dict[str, bytes | None]]:
    return [cutting.disk for cutting in power_cuts(list(steps), random.Random(1)) if cutting.before == len(steps)]


NEW = Made(directory=ROOT, name="new", number=1, is_directory=False)
DATA = Wrote(number=1, offset=0, data=b"abcd")
RENAME = Renamed(directory=ROOT, name="new", to="old")


def test_a_file_that_was_synced_without_its_directory_may_be_gone() -> None:
    assert {} in disks(NEW, DATA, Synced(number=1), Said(text="done"))


def test_a_directory_that_was_synced_may_name_a_file_without_its_bytes() -> None:
    left = disks(NEW, DATA, Synced(number=ROOT), Said(text="done"))
    assert {"new": b""} in left
    assert {"new": b"ab"} in left
    assert {"new": bytes(4)} in left
    assert {} not in left


def test_synced_data_has_one_possible_disk() -> None:
    assert disks(NEW, DATA, Synced(number=1), Synced(number=ROOT), Said(text="done")) == [{"new": b"abcd"}]


def test_a_rename_is_old_or_new_until_its_directory_is_synced() -> None:
    before = (NEW, DATA, Synced(number=1), Synced(number=ROOT), RENAME)
    assert sorted(map(list, disks(*before, Said(text="done")))) == [["new"], ["old"]]
    assert disks(*before, Synced(number=ROOT), Said(text="done")) == [{"old": b"abcd"}]
