"""docs/inbox.md agrees with the code, and its examples work as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mam.config.inbox import INBOX_KEYS, MODES, QUEUE_KEYS
from mam.inbox.front_matter import KEYS
from mam.inbox.mirror import TRANSITIONS
from mam.work.git.delivery import COMMAND

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "inbox.md").read_text(encoding="utf-8")


def test_every_key_is_documented() -> None:
    keys = [*KEYS, *INBOX_KEYS, *QUEUE_KEYS]
    assert [key for key in keys if not re.search(rf"^\| [^|]*`{key}`", TEXT, re.MULTILINE)] == []


def test_modes_states_and_the_default_command_are_documented() -> None:
    assert all(f"| `{mode}`" in TEXT for mode in MODES)
    assert all(f"`{state}`" in TEXT for state in TRANSITIONS)
    assert " ".join(COMMAND) in TEXT


def test_the_examples_work(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mam").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam "$@"\n')
    (programs / "mam").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    ran = subprocess.run(
        ["sh", "-euc", "\n".join(blocks)], cwd=here, capture_output=True, text=True, timeout=120,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "hello from the shop" in ran.stdout.rpartition("## Result")[2]
    assert "ExecStart=" in (here / "mam-inbox.service").read_text()
