"""Repeated kills on one store, the disk before each step, and commands under strace: a short form of the long run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.amount import DOSE
from tests.faults.isolated import alone
from tests.faults.mutants import mutated
from tests.faults.seeded_faults import MUTANTS
from tests.faults.store_kinds import STORE_KINDS, StoreKind
from tests.needs import need

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

SEAMS = [(store_kind, seam) for store_kind in STORE_KINDS.values() for seam in store_kind.seams]
at_every_seam = pytest.mark.parametrize(
    ("store_kind", "seam"), SEAMS, ids=[f"{store_kind.name}-{seam}" for store_kind, seam in SEAMS]
)


@at_every_seam
def test_a_chain_of_kills(folder: Path, store_kind: StoreKind, seam: str) -> None:
    assert alone("chain", store_kind.name, seam, 100 * DOSE, 1, folder) >= 100 * DOSE


@at_every_seam
def test_the_disk_before_each_step_is_sound(folder: Path, store_kind: StoreKind, seam: str) -> None:
    assert alone("snapshots", store_kind.name, seam, 150 * DOSE, 1, folder) >= 150 * DOSE


@pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))
def test_commands_that_the_kernel_kills(folder: Path, store_kind: StoreKind) -> None:
    need("strace", "mosquitto", "mosquitto_sub")
    assert alone("commands", store_kind.name, "", 3 * DOSE, 1, folder) > 20 * DOSE, "strace no longer kills"


def test_a_failure_prints_seed_store_and_kill_point_and_the_line_that_tries_it_again() -> None:
    """The test puts a fault in, runs the printed command, and sees the same failure."""
    (fault,) = [mutant for mutant in MUTANTS if mutant.name == "events are appended again after a kill"]
    with mutated(fault) as (copy, environment):
        long = [sys.executable, "-m", "tests.faults.long", "--jobs", "1", "--only", "fork-kills on files at each call"]
        ran = subprocess.run([*long, "--hours", "0.0001"], cwd=copy, env=environment, capture_output=True, text=True,
                             check=False)  # fmt: skip
        assert ran.returncode == 1, ran.stderr
        assert re.search(r"^FAILED fork-kills on files at each call, seed 1: ", ran.stderr, re.MULTILINE), ran.stderr
        assert re.search(r"after \d+ kills, act \d+ killed before step \d+", ran.stderr), ran.stderr
        (line,) = re.findall(r"^replay: python (.*)$", ran.stderr, re.MULTILINE)
        again = subprocess.run([sys.executable, *shlex.split(line)], cwd=copy, env=environment, capture_output=True,
                               text=True, check=False)  # fmt: skip
        assert again.returncode != 0
        assert "killed before step" in again.stderr
