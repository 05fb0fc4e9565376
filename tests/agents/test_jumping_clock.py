"""The real commands while the wall clock jumps (Debian's faketime): no lease ends early, and no expired one becomes
valid.

The boot clock does not jump, as when an administrator sets the time of a machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam.machine.processes import is_alive, send_signal
from tests.agents.sessions import Sessions
from tests.cli.command import Mam
from tests.needs import need
from tests.waiting import await_that

JUMPS = ["+10d", "-10d", "+1h", "-1h"]
SLEEPS = Path(__file__).parent / "faketime"
"""A directory with a sitecustomize for interpreters that see the clock jump."""
PUBLISH = ("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m.json")


def library() -> str:
    """The directory of faketime's library."""
    need("faketime")
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    assert found, "apt-get install faketime"
    return str(found[0])


def at(jump: str) -> dict[str, Any]:
    """The environment of a command that sees the clock shifted by this much."""
    path = os.pathsep.join((str(SLEEPS), os.environ.get("PYTHONPATH", "")))
    return {"LD_PRELOAD": library(), "FAKETIME": jump, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": path}


@pytest.fixture
def session(mam: Mam) -> dict[str, Any]:
    """A session published at the right time, as its environment."""
    mam.env["MAM_AGENTS_DIR"] = str(mam.home / "agents")
    agent, generation = mam(*PUBLISH, "--lease", "30m").line.split("\t")
    return {"MAM_AGENT_ID": agent, "MAM_GENERATION": generation}


def test_the_clock_really_jumps(mam: Mam, session: dict[str, Any]) -> None:
    near, far = mam("register", "p", "--agent", "a").line, mam("register", "p", "--agent", "a", **at("+400d")).line
    assert mam("get", near).json["created_at"][:4] < mam("get", far).json["created_at"][:4]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_sleep_survives_a_jump_of_the_clock(jump: str) -> None:
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.001)"], env=os.environ | at(jump), check=True)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_fresh_lease_stays_fresh(mam: Mam, session: dict[str, Any], jump: str) -> None:
    agent, now = session["MAM_AGENT_ID"], at(jump)
    assert mam("agents", "resolve", "gpu", **now).line == agent
    mam(*PUBLISH, **now).failed(4, session["MAM_GENERATION"])
    report = mam("agents", "cleanup", "--json", "--grace", "0", **now).json
    assert [kept["agent_id"] for kept in report["kept"]] == [agent]
    assert (report["applied"], report["failed"]) == ([], [])
    assert mam("agents", "show", "gpu").json["generation_id"] == session["MAM_GENERATION"]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_lease_renewed_meanwhile_is_valid_when_the_clock_is_right_again(
    mam: Mam, session: dict[str, Any], jump: str
) -> None:
    assert mam("agents", "refresh", **session, **at(jump)).code == 0
    assert mam("agents", "resolve", "gpu").line == session["MAM_AGENT_ID"]
    mam(*PUBLISH).failed(4)
    for other in JUMPS:
        assert mam("agents", "resolve", "gpu", **at(other)).line == session["MAM_AGENT_ID"]


@pytest.mark.parametrize("jump", JUMPS)
def test_an_expired_lease_does_not_come_back(mam: Mam, session: dict[str, Any], jump: str) -> None:
    assert mam("agents", "refresh", "--lease", "1s", **session).code == 0
    await_that(lambda: mam("agents", "resolve", "gpu").code == 1)
    mam("agents", "resolve", "gpu", **at(jump)).failed(1, "its lease ended")
    planned = mam("agents", "cleanup", "--dry-run", "--grace", "0", **at(jump))
    assert planned.line.startswith(f"planned\t{session['MAM_AGENT_ID']}")
    assert mam(*PUBLISH, **at(jump)).code == 0, "its place is free"
    mam("agents", "refresh", **session, **at(jump)).failed(4, "has been replaced")


@pytest.mark.parametrize("jump", JUMPS)
def test_a_claim_of_a_session_is_not_lost_and_not_lengthened(mam: Mam, session: dict[str, Any], jump: str) -> None:
    job = mam("register", "p", "--agent", "shell").line
    assert mam("pick", "-s", "shell", "--lease", "20m", **session).line == job
    mam("pick", "-s", "shell", **session, **at(jump)).failed(3)
    assert mam("status", job, **at(jump)).line == "running"
    claim = mam("get", job).json
    assert (claim["losses"], claim["claimant"]["generation_id"]) == (0, session["MAM_GENERATION"])
    assert mam("complete", job, "--attempt", "1", **at(jump)).code == 0


def test_the_companion_keeps_the_lease_while_the_clock_jumps_under_it(sessions: Sessions, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0", encoding="ascii")
    mam = sessions.mam
    mam.env.update(at(""), FAKETIME_TIMESTAMP_FILE=str(clock), FAKETIME_NO_CACHE="1")
    del mam.env["FAKETIME"]
    assert mam("agents", "start", "gpu", "--lease", "12s", "--", "cat").code == 0
    companion = sessions.process("gpu", "companion")

    for jump in ("+10d", "-10d", "+1h", "+0"):
        before = sessions.record("gpu")["liveness"]["published_at"]
        clock.write_text(jump, encoding="ascii")
        assert sessions.status("gpu")["record"] == "live"
        await_that(lambda before=before: sessions.record("gpu")["liveness"]["published_at"] != before)  # type: ignore[misc]
        status = sessions.status("gpu")
        assert (status["record"], status["companion"], status["drift"]) == ("live", "there", [])
        assert mam("agents", "cleanup", "--json").json["applied"] == []

    assert send_signal(companion, signal.SIGKILL)
    await_that(lambda: not is_alive(companion))
    await_that(lambda: sessions.status("gpu")["record"] == "expired")
    clock.write_text("-10d", encoding="ascii")
    assert sessions.status("gpu")["record"] == "expired", "a step back revives nothing"
