"""Fixtures that several directories of tests share."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.command import Mam
from tests.disks import own_disk, small_disk
from tests.needs import pytest_terminal_summary
from tests.postgres.databases import database, server
from tests.waiting import Gate

__all__ = ["database", "mam", "own_disk", "pytest_terminal_summary", "server", "small_disk"]

# How long an example takes says how busy the machine is, and nothing about mam.
settings.register_profile("mam", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mam")


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    """The command, in a project and a home of its own."""
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.close()


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Stores that tests open in this process are not remembered as the user's."""
    state = tmp_path_factory.mktemp("state", numbered=True)
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(state)
    yield state
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def _signals_as_usual() -> None:
    """`nohup make test &` has this process ignore signals, and what it starts would inherit that. A handler that does
    nothing is not inherited. In a group of their own the tests and what they start get no hangup, as nohup wants."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT) if _is_ignored(number)]
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    if signal.SIGHUP in ignored:
        with contextlib.suppress(PermissionError):  # the first of a session is alone in its group
            os.setpgid(0, 0)


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN
