"""The real command, killed or given errors at the calls that touch its store. `make faults-long` tries all of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.amount import DOSE
from tests.faults.store_kinds import HOMES, Home
from tests.faults.tracing import COMMANDS, Stage, failing, killed

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

MOMENTS = 4 * DOSE
ERRORS = ("EIO", "ENOSPC", "EROFS", "EMFILE")
on_every_home = pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))


@pytest.fixture
def stage(home: Home, folder: Path) -> Stage:
    return Stage(home, folder)


@on_every_home
@pytest.mark.parametrize("verb", COMMANDS)
def test_killed_at_some_of_its_calls(stage: Stage, verb: str) -> None:
    moments, expected = stage.moments(verb), stage.undisturbed(verb)
    some = random.Random(verb).sample(moments, MOMENTS) if len(moments) > MOMENTS else moments
    # A run may come out with fewer calls than the one that was counted: not every moment comes.
    came = [killed(stage, verb, moment, expected) for moment in some]
    assert any(came)


@on_every_home
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_error_at_some_of_its_calls(stage: Stage, verb: str) -> None:
    chance = random.Random(f"error {verb}")
    moments, expected = stage.moments(verb), stage.undisturbed(verb)
    moments = [moment for moment in moments if moment.call != "fcntl"]  # a lock that is refused is one that others hold
    for moment in chance.sample(moments, min(MOMENTS, len(moments))):
        failing(stage, verb, moment, chance.choice(ERRORS), expected)
