"""The power fails at any step of a recorded run: every possible disk contains all acknowledged acts."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from mam.stores.files.records import read_stamp
from tests.faults.amount import DOSE
from tests.faults.power import power_cuts, written
from tests.faults.power_cuts import cut_everywhere
from tests.faults.recording import ROOT, Created, Printed, Renamed, Step, Synced, Written, recorded
from tests.faults.side_files import kept
from tests.faults.store_kinds import STORE_KINDS, StoreKind

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

ACTS = 8


@pytest.mark.parametrize("seed", range(2, DOSE + 2))
@pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))
def test_acknowledged_acts_are_on_every_disk_that_a_power_cut_may_leave(
    folder: Path, store_kind: StoreKind, seed: int
) -> None:
    assert cut_everywhere(store_kind, folder, seed, ACTS) > 500, "the recorder no longer sees the store"


@pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))
def test_what_is_kept_beside_the_journal_is_old_or_new_after_a_cut(folder: Path, store_kind: StoreKind) -> None:
    """Secrets and pauses: each is acknowledged by its own name, and is there on every disk from then on."""
    root, after = folder / "root", folder / "after"
    root.mkdir()
    steps = recorded(["tests.faults.side_files", store_kind.name, str(root / "place")], root)
    for cut in power_cuts(steps, random.Random(1), mixes=1):
        if not cut.heard:
            continue
        written(cut.disk, after)
        store = store_kind.open(after / "place")
        assert set(cut.heard) <= {f"{name}\n" for name in kept(store)}, cut.told
        store.close()
        shutil.rmtree(after)


def test_a_registration_has_its_record_file_on_every_disk(folder: Path) -> None:
    """Also before mam has acted again: `register` syncs file and directory before it answers."""
    root, after = folder / "root", folder / "after"
    root.mkdir()
    steps = recorded(["tests.faults.register_loop", str(root / "place")], root)
    heard = 0
    for cut in power_cuts(steps, random.Random(1)):
        written(cut.disk, after)
        for job_id in "".join(cut.heard).split():
            heard += 1
            text = (after / "place/jobs" / f"{job_id}.json").read_bytes()
            assert read_stamp(text) is not None, cut.told
        shutil.rmtree(after)
    assert heard > 50


# -- the judge of disks, judged ----------------------------------------------------------------------------------------


def disks(*steps: Step) -> list[dict[str, bytes | None]]:
    return [cut.disk for cut in power_cuts(list(steps), random.Random(1)) if cut.before == len(steps)]


NEW = Created(directory=ROOT, name="new", number=1, is_directory=False)
DATA = Written(number=1, offset=0, data=b"abcd")
RENAME = Renamed(directory=ROOT, name="new", to="old")


def test_a_file_that_was_synced_without_its_directory_may_be_gone() -> None:
    assert {} in disks(NEW, DATA, Synced(number=1), Printed(text="done"))


def test_a_directory_that_was_synced_may_name_a_file_without_its_bytes() -> None:
    left = disks(NEW, DATA, Synced(number=ROOT), Printed(text="done"))
    assert {"new": b""} in left
    assert {"new": b"ab"} in left
    assert {"new": bytes(4)} in left
    assert {} not in left


def test_synced_data_has_one_possible_disk() -> None:
    assert disks(NEW, DATA, Synced(number=1), Synced(number=ROOT), Printed(text="done")) == [{"new": b"abcd"}]


def test_a_rename_is_old_or_new_until_its_directory_is_synced() -> None:
    before = (NEW, DATA, Synced(number=1), Synced(number=ROOT), RENAME)
    assert sorted(map(list, disks(*before, Printed(text="done")))) == [["new"], ["old"]]
    assert disks(*before, Synced(number=ROOT), Printed(text="done")) == [{"old": b"abcd"}]
