"""Real file systems lose power during acts: acknowledged acts are there after the restart."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from tests.faults.amount import DOSE
from tests.faults.mounted import KINDS, PowerCutSeries, disk_of, why_not
from tests.faults.store_kinds import STORE_KINDS, StoreKind

CUTS = 25 * DOSE


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default:NO POWER WAS CUT")
@pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost_when_the_power_fails(folder: Path, store_kind: StoreKind, kind: str) -> None:
    missing = why_not()
    if missing and not os.environ.get("CI"):
        warnings.warn(f"NO POWER WAS CUT on {kind}: {missing}", pytest.PytestWarning, stacklevel=1)
        pytest.skip(missing)
    assert missing is None, missing
    with disk_of(folder, kind) as disk:
        assert PowerCutSeries(store_kind, disk, seed=1).run(CUTS) == CUTS
