"""Kills one process after another on one store: each checks what the killed one before it left, and is killed in turn.

An act is repeated: killed before its first step, its second one, and so on, until it completes. Every fifth process
is killed while it opens the store, so that recovery is interrupted too. Nothing is restored in between and no
interpreter is started, so a million kills are possible. A process knows the store's state from its parent, and passes
on what it read before it is killed.
"""

from __future__ import annotations

import marshal
import os
import random
import signal
import traceback
from io import BytesIO
from pathlib import Path
from typing import Any

from mam.registry import Registry
from mam.stores.port import Entry
from tests.faults.invariants import FoldedJournal, check_files, check_no_problems
from tests.faults.killing import forked
from tests.faults.random_life import RandomUser
from tests.faults.store_kinds import StoreKind

JUDGED, THOROUGH = 4, 100
"""Every fourth process checks the jobs that the journal has named since and a few others; every hundredth, all jobs."""
NEVER = 1 << 60


class Chain:
    """One store at one seam. The seam is installed once for this process and all its children: one chain a process."""

    def __init__(self, store_kind: StoreKind, seam: str, place: Path, seed: int) -> None:
        self._store_kind = store_kind
        self._place = place
        self._seed = seed
        self._chance = random.Random(f"chain {seed}")
        self._left = NEVER
        self._folded = FoldedJournal()
        self._acknowledged = 0
        self._acts = 0
        self._step = 0
        self._turns = 0
        self.kills = 0
        store_kind.make(place)
        self._kept = store_kind.seams[seam](self._count)

    def run(self, kills: int) -> int:
        while self.kills < kills:
            self._turns += 1
            self._turn(thorough=self._turns % THOROUGH == 0)
        self._turn(thorough=True)
        return self.kills

    @property
    def where(self) -> str:
        return f"after {self.kills} kills, act {self._acts} killed before step {self._step}"

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _turn(self, *, thorough: bool) -> None:
        recovering = self._chance.random() < 0.2
        last_step = self._chance.randint(1, 12) if recovering else self._step + 1
        reader, writer = os.pipe()
        child = forked()
        if child == 0:
            os.close(reader)
            self._be_killed(writer, last_step, recovering=recovering, thorough=thorough)
        os.close(writer)
        with open(reader, "rb") as pipe:
            said = pipe.read()
        status = os.waitpid(child, 0)[1]
        self._hear(said)
        if os.WIFSIGNALED(status):
            self.kills += 1
            self._step += not recovering
        elif not recovering:
            self._acts, self._step = self._acts + 1, 0

    def _hear(self, said: bytes) -> None:
        pipe = BytesIO(said)
        while pipe.tell() < len(said):
            match marshal.load(pipe):
                case int() as acknowledged:
                    self._acknowledged = acknowledged
                case str() as complaint:
                    raise AssertionError(f"{self.where}: {complaint}")
                case tail:
                    self._folded.fold(Entry(**entry) for entry in tail)

    # -- in the child ----------------------------------------------------------------------------------------------

    def _be_killed(self, writer: int, last_step: int, *, recovering: bool, thorough: bool) -> None:
        try:
            if recovering:
                self._left = last_step
            store = self._store_kind.open(self._place)
            store.end_offset()
            self._left = NEVER
            if thorough or self._turns % JUDGED == 0:
                tail = self._folded.follow(store)
                self._judge(store, tail, thorough=thorough)
                os.write(writer, marshal.dumps([entry.as_dict() for entry in tail]))
            if not recovering:
                life = RandomUser(Registry(store), f"{self._seed} {self._acts}", self._folded)
                self._left = last_step
                life.act()
                self._left = NEVER
                os.write(writer, marshal.dumps(life.entries()))
        except BaseException:
            self._left = NEVER
            os.write(writer, marshal.dumps(traceback.format_exc()))
        os._exit(0)

    def _judge(self, store: Any, tail: list[Entry], *, thorough: bool) -> None:
        folded = self._folded
        assert folded.number >= self._acknowledged, f"{self._acknowledged} were acknowledged, {folded.number} are there"
        if thorough:
            again = FoldedJournal()
            again.follow(store)
            assert (again.records, again.archived) == (folded.records, folded.archived), "the journal has changed"
            folded.check_everything(store)
            check_files(self._store_kind, self._place, store)
            return
        some = self._chance.sample(sorted(folded.records), min(2, len(folded.records)))
        for job_id in {*some, *(entry.job_id for entry in tail)}:
            folded.check_job(store, job_id)
        check_no_problems(store)
