"""The recipes of docs/how-to/recipes.md work as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

THREE_JOBS = 'for n in 1 2 3; do mam register "job $n" --agent codex; done\n'
FINISH_THREE = """
{ for n in 1 2 3; do job=$(mam pick -s codex --wait 30); mam complete "$job" --result "answer $n"; done; } &
"""

BEFORE = {
    "A worker as a shell loop": THREE_JOBS,
    "Work for several labels": "mam register first --agent anyone; mam register second --agent anyone\n",
    "Wait for a batch": f"mam init\n{FINISH_THREE}",
    "Register from cron, once a day": "mkdir ~/course; mam init\n",
    "Start later": "",
    "Retry the errors of a day": f"{THREE_JOBS} mam fail $(mam pick -s codex) --reason broken\n",
    "Back up, restore, move a registry": THREE_JOBS,
    "Read the audit log after the registry is gone": THREE_JOBS,
    "Write another store": "",
}
"""The preparation of every recipe."""

AFTER = {
    "A worker as a shell loop": '[ "$(mam result $(mam list -s codex --status completed --limit 1 | cut -f1))" = '
    '"my answer to: job 3" ]; [ "$(mam list --status completed | wc -l)" = 3 ]',
    "Work for several labels": '[ "$(mam list --status running | wc -l)" = 2 ]',
    "Wait for a batch": '[ "$(cat *.md | tr -d "\\n" | wc -c)" = 24 ]',
    "Register from cron, once a day": '[ "$(cat .mam/jobs/*.json ~/course/.mam/jobs/*.json | grep -c job_id)" = 2 ]',
    "Start later": '[ "$(mam list --status waiting | wc -l)" = 2 ]',
    "Retry the errors of a day": '[ "$(mam list | wc -l)" = 4 ]',
    "Back up, restore, move a registry": '[ "$(mam list --store elsewhere/.mam/jobs | wc -l)" = 3 ]',
    "Read the audit log after the registry is gone": '[ "$(mam logs --list | wc -l)" = 3 ]',
    "Write another store": "",
}
"""A check after every recipe."""


def _recipes() -> dict[str, list[tuple[str, str]]]:
    text = (ROOT / "docs" / "how-to" / "recipes.md").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
    return {title: _BLOCK.findall(body) for title, _, body in sections}


def test_every_recipe_is_run() -> None:
    assert set(_recipes()) == set(BEFORE) == set(AFTER)


@pytest.mark.parametrize("title", BEFORE)
def test_each_recipe_works_as_printed(title: str, tmp_path: Path) -> None:
    here, programs = tmp_path / "here", tmp_path / "bin"
    here.mkdir()
    programs.mkdir()
    _program(programs / "mam", f'exec "{sys.executable}" -m mam "$@"')
    _program(programs / "python3", f'exec "{sys.executable}" "$@"')
    _program(programs / "my-agent", "echo my answer to: $(cat)")
    blocks = _recipes()[title]
    for _, code in (block for block in blocks if block[0] == "python"):
        (here / code.split("\n")[0].removeprefix("# ")).write_text(code, encoding="utf-8")
    script = "\n".join(["set -eu", BEFORE[title], *(code for kind, code in blocks if kind == "sh"), AFTER[title]])

    ran = subprocess.run(
        # The test sends no further job, so it does not wait ten minutes for one.
        ["sh", "-c", script.replace("--wait 10m", "--wait 1")],
        cwd=here, capture_output=True, text=True, timeout=240,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8"},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout + ran.stderr


def _program(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    file.chmod(0o755)
