"""The skill: in the form that agents read, put where they look, and every command that it teaches works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.command import Mam
from tests.needs import need

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills" / "mam" / "SKILL.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DELEGATE = """
{ eval "$(mam pick -s claude-code --wait 60 --export)"; export MAM_JOB_ID MAM_ATTEMPT; echo done > notes.md
"""


def test_its_form_is_the_one_that_agents_accept() -> None:
    text = SKILL.read_text("utf-8")
    _, front, body = text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.strip().splitlines())
    assert set(fields) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert fields["name"] == SKILL.parent.name
    assert 1 <= len(fields["description"]) <= 1024
    assert not set("<>") & set(fields["description"])
    assert len(body.splitlines()) < 500


def test_every_command_that_it_teaches_works(tmp_path: Path) -> None:
    need("bash")
    register, wait, look, report = BLOCK.findall(SKILL.read_text("utf-8"))
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    (here / "data.txt").write_text("1 2 3", "utf-8")
    delegate = f"{DELEGATE} {report} }} > delegate.log 2>&1 &\n"
    script = f"set -eu\nmam init\n{register}{delegate}{wait}{look}wait\n"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    ran = subprocess.run(
        ["bash", "-c", script], cwd=here, env={"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr + (here / "delegate.log").read_text("utf-8")
    assert "notes.md has the three sentences" in ran.stdout
    assert "tests pass, writing the notes" in ran.stdout


def test_it_is_installed_only_after_asking_and_shows_where(mam: Mam) -> None:
    (mam.here / ".git").mkdir()
    below = mam.here / "below"
    below.mkdir()
    written = [mam.here / place / "skills" / "mam" / "SKILL.md" for place in (".claude", ".agents")]
    asked = mam("skill", "install", cwd=below)
    assert asked.code == 2
    assert "--yes" in asked.stderr
    assert not any(path.exists() for path in written)

    ran = mam("skill", "install", "--yes", cwd=below)
    assert (ran.code, ran.out.splitlines()) == (0, [str(path) for path in written])
    assert all(path.read_text("utf-8") == SKILL.read_text("utf-8") for path in written)
    assert mam("skill", "install", "--json").json == {"written": [], "left": []}
    assert mam("skill", "show").out == SKILL.read_text("utf-8")


def test_the_skill_is_installed_for_the_user(mam: Mam) -> None:
    ran = mam("skill", "install", "--user", "--yes")
    assert ran.out.splitlines() == [str(mam.home / place / "skills/mam/SKILL.md") for place in (".claude", ".agents")]
    mam("skill", "install", "--user", "--project").failed(2, "not both")


def test_a_changed_file_is_never_replaced_unasked(mam: Mam) -> None:
    (mam.here / ".git").mkdir()
    mam("skill", "install", "--yes")
    mine, linked = (mam.here / place / "skills/mam/SKILL.md" for place in (".claude", ".agents"))
    mine.write_text("my own", "utf-8")
    target = mam.here / "target"
    target.write_text("theirs", "utf-8")
    linked.unlink()
    linked.symlink_to(target)

    ran = mam("skill", "install", "--yes")
    assert (ran.code, ran.out, mine.read_text("utf-8")) == (1, "", "my own")
    assert "differs" in ran.stderr
    assert "not a regular file" in ran.stderr

    ran = mam("skill", "install", "--yes", "--replace")
    assert mine.read_text("utf-8") == SKILL.read_text("utf-8")
    assert mine.with_name("SKILL.md.before").read_text("utf-8") == "my own"
    assert target.read_text("utf-8") == "theirs"


def test_a_job_cannot_install_a_skill(mam: Mam) -> None:
    mam("skill", "install", "--yes", MAM_SOCKET="/x", MAM_JOB_ID="x").failed(1, "a job cannot")
