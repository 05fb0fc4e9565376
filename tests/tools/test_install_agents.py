"""The cache of the coding agents, with a program in the place of npm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NPM = """#!/bin/sh
echo called >>"$CALLS"
sleep 0.3
test -z "$NPM_FAILS" || { echo "npm error network" >&2; exit 7; }
mkdir -p "$3/node_modules/.bin"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "npm").write_text(NPM)
    (programs / "npm").chmod(0o755)
    return {
        "PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(tmp_path / "calls"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip


def start(link: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.real_agents.install", str(link)], env=env, cwd=Path(__file__).parents[2],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_checkouts_that_install_at_once_download_once(tmp_path: Path, env: dict[str, str]) -> None:
    links = [tmp_path / "one", tmp_path / "two"]
    (tmp_path / "two").mkdir()  # an older checkout installed into a directory

    for process in [start(link, env) for link in links]:
        _, said = process.communicate()
        assert process.returncode == 0, said

    assert (tmp_path / "calls").read_text() == "called\n"
    assert os.readlink(links[0]) == os.readlink(links[1])
    assert all((link / "node_modules/.bin").is_dir() for link in links)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"NPM_FAILS": "1"}, "is its registry reachable?"), ({"PATH": "/nowhere"}, "apt-get install npm")],
)
def test_a_failed_installation_is_one_line_and_leaves_nothing(
    tmp_path: Path, env: dict[str, str], change: dict[str, str], said: str
) -> None:
    process = start(tmp_path / "link", {**env, **change})
    _, told = process.communicate()

    assert process.returncode == 1
    assert said in told.splitlines()[-1]
    assert "Traceback" not in told
    assert not os.path.lexists(tmp_path / "link")
    assert not [path for path in (tmp_path / "cache/mam-tests").iterdir() if path.is_dir()]
