"""The real command, killed or given errors at the calls that touch its store. `make faults-long` tries all of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.amount import DOSE
from tests.faults.store_kinds import STORE_KINDS, StoreKind
from tests.faults.tracing import COMMANDS, PreparedStore, failing, killed

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

MOMENTS = 4 * DOSE
ERRORS = ("EIO", "ENOSPC", "EROFS", "EMFILE")
on_every_store_kind = pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))


@pytest.fixture
def prepared(store_kind: StoreKind, folder: Path) -> PreparedStore:
    return PreparedStore(store_kind, folder)


@on_every_store_kind
@pytest.mark.parametrize("verb", COMMANDS)
def test_killed_at_some_of_its_calls(prepared: PreparedStore, verb: str) -> None:
    moments, expected = prepared.moments(verb), prepared.undisturbed(verb)
    some = random.Random(verb).sample(moments, MOMENTS) if len(moments) > MOMENTS else moments
    # A run may make fewer calls than the counted one, so it does not reach every moment.
    came = [killed(prepared, verb, moment, expected) for moment in some]
    assert any(came)


@on_every_store_kind
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_error_at_some_of_its_calls(prepared: PreparedStore, verb: str) -> None:
    chance = random.Random(f"error {verb}")
    moments, expected = prepared.moments(verb), prepared.undisturbed(verb)
    # mam takes an error of fcntl for a lock that another process holds.
    moments = [moment for moment in moments if moment.call != "fcntl"]
    for moment in chance.sample(moments, min(MOMENTS, len(moments))):
        failing(prepared, verb, moment, chance.choice(ERRORS), expected)
