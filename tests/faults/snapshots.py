"""Copies the disk before each step of an act: all that a kill there would leave, without killing a process.

A process that is forked and killed spends most of its time on memory that it shares with its parent. Here one process
acts and copies the disk before each step. Each copy is then opened and checked, and the acts continue in one of them.
The effects of the death of a process (its locks are free) are left to `chains.py`.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from mam.registry import Registry
from tests.faults.invariants import FoldedJournal, check_files, check_no_problems
from tests.faults.random_life import RandomUser
from tests.faults.store_kinds import StoreKind

MOST_JOBS = 12
"""The acts after which a new store is used, because copying a store costs time for each file."""
THOROUGH = 25


class Snapshots:
    """Acts at one seam. The seam is installed once for this process; nothing else may use the stores meanwhile."""

    def __init__(self, store_kind: StoreKind, seam: str, folder: Path, seed: int) -> None:
        self._store_kind = store_kind
        self._folder = folder
        self._seed = seed
        self._chance = random.Random(f"snapshots {seed}")
        self._armed = False
        self._folded = FoldedJournal()
        self._acts = 0
        self._wrecks: list[Path] = []
        self._place = folder / "place"
        self.points = 0
        self._kept = store_kind.seams[seam](self._count)
        store_kind.make(self._place)

    def run(self, points: int) -> int:
        while self.points < points:
            self._in_transaction()
        return self.points

    @property
    def where(self) -> str:
        return f"act {self._acts} killed before step {len(self._wrecks)}"

    def _count(self) -> None:
        if self._armed:
            self._armed = False  # the next statements go through the seam too
            wreck = self._folder / f"wreck-{len(self._wrecks)}"
            put_aside(self._place, wreck)
            self._wrecks.append(wreck)
            self._armed = True

    def _in_transaction(self) -> None:
        if len(self._folded.records) > MOST_JOBS:
            shutil.rmtree(self._place)
            self._store_kind.make(self._place)
            self._folded = FoldedJournal()
        store = self._store_kind.open(self._place)
        self._folded.follow(store)
        before = self._folded.number
        life = RandomUser(Registry(store), f"{self._seed} {self._acts}", self._folded)
        self._acts += 1
        self._armed = True
        life.act()
        self._armed = False
        after = life.entries()
        put_aside(self._place, self._folder / f"wreck-{len(self._wrecks)}")
        self._wrecks.append(self._folder / f"wreck-{len(self._wrecks)}")
        store.close()
        shutil.rmtree(self._place)
        heirs = [self._judged(wreck, at_least=before) for wreck in self._wrecks[:-1]]
        self.points += len(heirs)
        heirs.append(self._judged(self._wrecks[-1], at_least=after))
        self._go_on_in(self._chance.randrange(len(heirs)), heirs)

    def _judged(self, wreck: Path, *, at_least: int) -> FoldedJournal:
        folded = self._folded.copied()
        store = self._store_kind.open(wreck)
        try:
            tail = folded.follow(store)
            assert folded.number >= at_least, f"{at_least} were acknowledged, {folded.number} are there"
            if self._chance.randrange(THOROUGH) == 0:
                folded.check_everything(store)
                check_files(self._store_kind, wreck, store)
            else:
                some = self._chance.sample(sorted(folded.records), min(2, len(folded.records)))
                for job_id in {*some, *(entry.job_id for entry in tail)}:
                    folded.check_job(store, job_id)
                check_no_problems(store)
        except AssertionError as error:
            raise AssertionError(f"{self._store_kind.name}, {self.where}, wreck {wreck.name}: {error}") from error
        finally:
            store.close()
        return folded

    def _go_on_in(self, chosen: int, heirs: list[FoldedJournal]) -> None:
        for place, wreck in enumerate(self._wrecks):
            if place == chosen:
                wreck.rename(self._place)
            else:
                shutil.rmtree(wreck)
        self._folded, self._wrecks = heirs[chosen], []


def put_aside(place: Path, wreck: Path) -> None:
    """The same tree, times included. A record is never written in place, so a second name for it is a copy, and it is
    the same file for an index that knows its inode."""
    wreck.mkdir(mode=0o700)
    for entry in os.scandir(place):
        there = wreck / entry.name
        if entry.is_dir(follow_symlinks=False):
            put_aside(Path(entry.path), there)
        elif entry.name.endswith(".json"):
            os.link(entry.path, there)
        else:
            shutil.copy2(entry.path, there)
    known = place.stat()
    os.utime(wreck, ns=(known.st_atime_ns, known.st_mtime_ns))
