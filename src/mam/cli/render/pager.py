"""Show text in the user's pager, as git does. Colours pass, other escape sequences do not."""

from __future__ import annotations

import os
import sys

from mam.work.git.command import GitFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.work.git.command import Git

LESS = "FRX"
"""What git gives to less: no pager for one screen, colours, and the text stays."""


def show_in_pager(parts: Iterator[bytes], git: Git) -> None:
    import subprocess

    from mam.util.escapes import EscapeFilter

    escapes, pager = EscapeFilter(), users_pager(git)
    if pager in ("", "cat") or not _can_start(pager):
        for part in parts:
            sys.stdout.buffer.write(escapes.filter(part))
        return
    sys.stdout.flush()
    env = {"LESS": LESS, "LV": "-c", **os.environ}
    with subprocess.Popen(["/bin/sh", "-c", pager], stdin=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None
        try:
            for part in parts:
                process.stdin.write(escapes.filter(part))
        except BrokenPipeError:
            return  # the user has left the pager


def _can_start(pager: str) -> bool:
    """Whether its program is there; a minimal system has no less."""
    from mam.machine.environment import find_program

    return any(letter in pager for letter in "$;|&(<>'\"") or find_program(pager.split()[0], os.environ) is not None


def users_pager(git: Git) -> str:
    """The user's own choice, never that of the repository."""
    named = os.environ.get("GIT_PAGER")
    if named is not None:
        return named.strip()
    for scope in ("--global", "--system"):
        for key in ("pager.diff", "core.pager"):
            try:
                found = git.path("config", scope, "--get", key)
            except GitFailed:
                continue
            if found not in ("", "true", "false"):
                return found.strip()
    return os.environ.get("PAGER", "less").strip()
