"""`mam seen`: a person looked at a failure. The job itself does not change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Mam

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["files", "sqlite"])
def mam(request: pytest.FixtureRequest, tmp_path: Path) -> Mam:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    mam = Mam(here, home)
    if request.param == "sqlite":
        mam.env["MAM_STORE"] = f"sqlite://{tmp_path}/jobs.db"
    return mam


def failed(mam: Mam) -> str:
    job = mam.register()
    assert mam("status", job, "--set", "error").code == 0
    return job


def unseen(mam: Mam) -> list[str]:
    return [line.split("\t")[0] for line in mam("list", "--unseen").out.splitlines()]


def test_it_changes_nothing_but_the_note(mam: Mam) -> None:
    job = failed(mam)
    before = mam.record(job)
    assert mam("seen", job[:8], "--by", "anna@laptop").line == job
    after = mam.record(job)
    note = after.pop("seen")
    assert note["by"] == "anna@laptop"
    del before["seen"]
    assert after == before


def test_the_audit_log_records_every_viewer_once(mam: Mam) -> None:
    job = failed(mam)
    for name in ("anna", "anna", "ben"):
        mam("seen", job, "--by", name)
    lines = [
        line for text in mam("logs", job, "--json").out.splitlines() if (line := json.loads(text))["event"] == "seen"
    ]
    assert [line["by"] for line in lines] == ["anna", "ben"]
    assert mam.record(job)["seen"]["by"] == "ben"


def test_a_list_of_the_failures_that_were_not_looked_at(mam: Mam) -> None:
    first, second, third = failed(mam), failed(mam), failed(mam)
    mam("register", "fine", "--agent", "shell")
    assert unseen(mam) == [third, second, first]
    mam("seen", second)
    mam("retry", third)
    assert unseen(mam) == [first]
    assert json.loads(mam("list", "--unseen", "--json").out)[0]["job_id"] == first
    assert "✖ error (seen)" in mam.on_terminal("list").stdout.decode()
    assert mam("seen", "--since", "1h").line == first
    assert unseen(mam) == []


def test_only_an_outcome_can_be_seen(mam: Mam) -> None:
    job = mam.register()
    mam("seen", job).failed(1, "pending", "ended job")
    mam("seen").failed(2, "give the ids")
    mam("seen", "--by", "", failed(mam)).failed(2, "name")
    mam("list", "--unseen", "--status", "error").failed(2, "--unseen")
    assert mam.record(job)["seen"] is None
