"""`mam demo` keeps its promises, reports a broken one, and leaves no process behind."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import Ran
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam

pytestmark = pytest.mark.external

PATIENCE = 240.0
NAMES = [
    "reindex",
    "crawl",
    "crawl/1",
    "crawl/2",
    "upload",
    "sorting",
    "searching",
    "graphs",
    "strings",
    "book",
    "report",
]


@pytest.fixture
def world(mam: Mam, tmp_path: Path) -> Mam:
    """With a place for temporary files that can be looked at, and a user whose settings would spoil everything."""
    places = tmp_path / "tmp"
    places.mkdir()
    mam.env.update(
        TMPDIR=str(places), MAM_STORE="postgresql://nobody@127.0.0.1:1/none", MAM_REQUIRE_ATTEMPT="nonsense",
        DELEGATE_JOB_LOGS_DIR=str(tmp_path / "not here"), MAM_JOB_ID="x", MAM_SOCKET="/nowhere",
    )  # fmt: skip
    settings = mam.home / "config" / "mam"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text("this is = not TOML at all")
    return mam


def demo(mam: Mam, *words: str) -> Ran:
    ran = subprocess.run(
        [sys.executable, "-m", "mam", "demo", *words], capture_output=True, cwd=mam.here, env=mam.env,
        stdin=subprocess.DEVNULL, timeout=PATIENCE,
    )  # fmt: skip
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())


def left_in(mam: Mam) -> list[str]:
    """But for the doors of the worker that the story kills, which the next one takes away a minute later. Whether they
    are here at all depends on how long the name of this place is."""
    return [name for name in os.listdir(mam.env["TMPDIR"]) if not name.startswith("mam-door-")]


def files_of(mam: Mam) -> set[str]:
    return {name for _, _, names in [*os.walk(mam.home), *os.walk(mam.here)] for name in names}


def started_by(mam: Mam) -> list[str]:
    """Processes whose environment names this test's place for temporary files."""
    found, mark = [], f"TMPDIR={mam.env['TMPDIR']}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environ, open(f"/proc/{name}/cmdline", "rb") as line:
                if mark in environ.read().split(b"\0"):
                    found.append(line.read().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_in_a_pipe_it_is_plain_text(world: Mam) -> None:
    ran = demo(world)

    assert (ran.code, ran.stderr) == (0, "")
    assert "\x1b" not in ran.out
    bars = {line.split()[0]: line for line in ran.out.splitlines() if line.split() and line.split()[0] in NAMES}
    assert list(bars) == NAMES
    assert re.search(r"carl.*╳.*†·*(anna|ben|a|b).*✔", bars["reindex"])
    assert "↻" in bars["upload"]
    assert bars["report"].endswith("✖ the validation script ended with 1")
    assert len(re.findall("^kept ", ran.out, re.MULTILINE)) == 9
    assert "mam watch" in ran.out
    assert left_in(world) == []
    assert files_of(world) == {"config.toml"}
    assert started_by(world) == []


def test_for_programs_it_is_one_document(world: Mam) -> None:
    ran = demo(world, "--json", "--keep")

    assert (ran.code, ran.stderr) == (0, "")
    document: dict[str, Any] = json.loads(ran.out)
    assert document["seconds"] < 150
    assert all(promise["kept"] for promise in document["promises"])
    jobs = {job["name"]: job for job in document["jobs"]}
    assert sorted(jobs) == sorted(NAMES)
    for job in jobs.values():
        times = [(span["from"], span["to"]) for span in job["timeline"]]
        assert all(before[1] == after[0] for before, after in itertools.pairwise(times))
        assert job["timeline"][-1]["state"] == job["record"]["status"]
    owners = [span["owner"] for span in jobs["reindex"]["timeline"] if span["state"] == "running"]
    assert owners[0] == "carl"
    assert owners[1] in ("anna", "ben")
    assert jobs["report"]["record"]["said"]["status"] == "completed"
    assert jobs["book"]["record"]["result"].strip().startswith("4 chapters")

    kept = document["directory"]
    assert left_in(world) == [os.path.basename(kept)]
    del world.env["MAM_STORE"], world.env["MAM_REQUIRE_ATTEMPT"], world.env["MAM_SOCKET"], world.env["MAM_JOB_ID"]
    world.env["MAM_CONFIG"] = "/dev/null"
    there = os.path.join(kept, "project", ".mam", "jobs")
    listed = {job["job_id"] for job in world("list", "--store", there, "--json").json}
    assert listed == {job["record"]["job_id"] for job in jobs.values()}


def test_on_a_terminal_the_chart_grows(world: Mam) -> None:
    with Terminal([sys.executable, "-m", "mam", "demo"], world.here, world.env, columns=110, rows=60) as terminal:
        terminal.shows("carl runs reindex", "▶ a third is done")
        terminal.until(lambda: "Next commands:" in terminal.text, "the demo does not end")

        assert terminal.ended() == 0
        assert terminal.settings == terminal.before
    assert sum(line.startswith("✔ ") for line in terminal.lines) == 9
    assert sum(line.startswith("reindex ") for line in terminal.lines) == 1


def test_a_broken_promise_fails_the_demo(world: Mam, tmp_path: Path) -> None:
    """With a `grep` that finds everything, the check of the report lets it pass."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "grep").write_text("#!/bin/sh\nexit 0\n")
    (programs / "grep").chmod(0o700)
    world.env["PATH"] = f"{programs}:{world.env['PATH']}"

    ran = demo(world)

    assert ran.code == 1
    assert "BROKEN  report reported success" in ran.out
    assert "BROKEN  Every job ended as expected" in ran.out
    assert "mam: broken promise: report reported" in ran.stderr
    assert "kept    No process was left running." in ran.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_broken_off_it_leaves_nothing_behind(world: Mam, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mam", "demo"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=world.here, env=world.env, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if "join" in line:
                break
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 128 + number
    assert "Traceback" not in out + err
    assert left_in(world) == []
    assert started_by(world) == []
