"""`--everywhere`: every store that this user has opened, those that are gone too."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.cli.command import Mam
from tests.cli.terminal import DOWN, ENTER, Terminal


@pytest.fixture
def stores(mam: Mam) -> list[Path]:
    """Three projects, one of them with a database."""
    mam.env["XDG_STATE_HOME"] = str(mam.home / "state")
    found = []
    for name in ("alpha", "beta"):
        (mam.here / name).mkdir()
        mam("register", f"job of {name}", "--agent", "shell", cwd=mam.here / name)
        found.append(mam.here / name / ".mam/jobs")
    database = mam.here / "gamma.db"
    mam("register", "job of gamma", "--agent", "shell", "--store", f"sqlite://{database}")
    return [*found, database]


def test_all_stores_are_listed_wherever_one_is(mam: Mam, stores: list[Path]) -> None:
    answer = mam("list", "--everywhere", "--json", cwd=mam.home).json
    assert [(one["store"], [job["prompt"] for job in one["jobs"]]) for one in answer] == [
        (str(stores[0]), ["job of alpha"]),
        (str(stores[1]), ["job of beta"]),
        (f"sqlite://{stores[2]}", ["job of gamma"]),
    ]
    lines = mam("list", "--everywhere").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(stores[0]), str(stores[1]), f"sqlite://{stores[2]}"]
    assert mam("list", "--everywhere", "--status", "running").out == ""
    shown = mam.on_terminal("list", "--everywhere", columns=80).out
    assert shown.count("JOB") == 3
    assert "job of gamma" in shown


def test_a_missing_store_is_listed_until_the_doctor_removes_it(mam: Mam, stores: list[Path]) -> None:
    shutil.rmtree(stores[0])
    stores[1].chmod(0o777)
    first, second, third = mam("list", "--everywhere", "--json").json
    assert "missing" in first["problem"]
    assert "everybody" in second["problem"]
    assert third["problem"] is None
    ran = mam("list", "--everywhere")
    assert ran.code == 0
    assert str(stores[0]) in ran.stderr
    assert not stores[0].exists(), "looking makes no store"
    mam("doctor", "--fix")
    assert [one["store"] for one in mam("list", "--everywhere", "--json").json] == [
        str(stores[1]),
        f"sqlite://{stores[2]}",
    ]


def test_a_store_that_cannot_be_read_is_named_once(mam: Mam, stores: list[Path]) -> None:
    with sqlite3.connect(stores[2]) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    address = f"sqlite://{stores[2]}"
    problem = mam("list", "--everywhere", "--json").json[2]["problem"]
    assert problem.startswith("has schema 99")
    assert mam("list", "--everywhere").stderr == f"mam: {address}: {problem}\n"


def test_nothing_yet_and_what_does_not_go_together(mam: Mam) -> None:
    assert mam("list", "--everywhere", "--json").json == []
    mam("list", "--everywhere", "--store", "/x").failed(2, "--store")
    mam("list", "--everywhere", "-s", "").failed(2, "label is empty")


def test_a_read_only_home_stops_no_verb(mam: Mam) -> None:
    (mam.home / "state").write_text("in the way")
    assert mam("register", "x", "--agent", "shell", XDG_STATE_HOME=str(mam.home / "state")).code == 0


def test_a_password_is_not_remembered(mam: Mam) -> None:
    mam.env["XDG_STATE_HOME"] = str(mam.home / "state")
    mam("list", "--store", "postgresql://anna:p4ss@127.0.0.1:1/x")
    assert "p4ss" not in str([names for _, _, names in os.walk(mam.home)])


def test_lines_of_all_stores(mam: Mam, stores: list[Path]) -> None:
    process = mam.start("watch", "--everywhere", "--json")
    try:
        assert process.stderr is not None
        assert process.stdout is not None
        for _ in stores:
            assert b"watching" in process.stderr.readline()
        for number in (0, 2):
            address = str(stores[number]) if number == 0 else f"sqlite://{stores[number]}"
            mam("pick", "-s", "shell", "--store", address)
            line = process.stdout.readline()
            assert f'"store": "{address}"'.encode() in line
            assert b'"to": "running"' in line
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.mark.external
def test_the_screen_of_all_stores(mam: Mam, stores: list[Path]) -> None:
    with Terminal(mam._argv(("watch", "--everywhere")), mam.here, mam.env, columns=80, rows=20) as terminal:
        terminal.shows("mam everywhere", "3 stores", "alpha/.mam/jobs", "gamma.db", "PENDING")
        mam("pick", "-s", "shell", cwd=mam.here / "beta")
        terminal.shows("1 running")
        terminal.type(DOWN)
        terminal.type(ENTER)
        terminal.shows("job of beta", "RUNNING")
        terminal.type("q")
        terminal.shows("mam everywhere", "3 stores")
        terminal.type("q")
        assert terminal.ended() == 0
        assert terminal.settings == terminal.before
