"""Real file systems lose their power in the middle of acts: what was acknowledged is there when it comes back."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from tests.faults.dose import DOSE
from tests.faults.homes import HOMES, Home
from tests.faults.mounted import KINDS, cut_while_it_works, disk_of, why_not

CUTS = 8 * DOSE


@pytest.mark.timeout(600)
@pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost_when_the_power_fails(tmp_path: Path, home: Home, kind: str) -> None:
    missing = why_not(kind)
    if missing and not os.environ.get("CI"):
        warnings.warn(f"NO POWER WAS CUT on {kind}: {missing}", pytest.PytestWarning, stacklevel=1)
        pytest.skip(missing)
    assert missing is None, missing
    with disk_of(tmp_path, kind) as disk:
        for seed in range(1, CUTS + 1):
            cut_while_it_works(home, disk, seed)
