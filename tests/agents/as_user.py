"""Run mam commands as another user, who cannot read this Python installation: every module is imported first.

    python -m tests.agents.as_user UID SCRATCH < commands.json

Each command is [argv, environment]; the results are JSON: [code, stdout, stderr].
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil  # noqa: F401 - needed later, when it cannot be read any more
import sys
from typing import Any


def main() -> None:
    uid, scratch = int(sys.argv[1]), sys.argv[2]
    commands: list[list[str]] = json.load(sys.stdin)
    wanted = os.environ["MAM_AGENTS_DIR"]
    os.environ["MAM_AGENTS_DIR"] = os.path.join(scratch, "warm")
    for argv in (*commands, ["agents", "no-such-verb"], ["agents", "cleanup", "--json"]):
        run(argv)
    os.environ["MAM_AGENTS_DIR"] = wanted
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.chdir("/")
    print(json.dumps([run(argv) for argv in commands]))


def run(argv: list[str]) -> tuple[int, str, str]:
    from mam.__main__ import run as run_mam

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code: Any = run_mam(argv)
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    main()
