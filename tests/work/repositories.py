"""Real git repositories for tests, away from the user's own settings."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

from mam.jobs.record import Job
from tests.needs import need
from tests.unit.jobs import pending

if TYPE_CHECKING:
    from pathlib import Path

_WHO = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *words: str, cwd: Path | str | None = None) -> str:
        need("git")
        ran = subprocess.run(
            ["git", *_WHO, *words], cwd=cwd or self.path, check=True, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.path.parent), "LC_ALL": "C"},
        )  # fmt: skip
        return ran.stdout.strip()

    def commit(self, file: str, content: str, cwd: Path | str | None = None) -> str:
        path = os.path.join(cwd or self.path, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as opened:
            opened.write(content)
        self.git("add", "--force", "--", file, cwd=cwd)
        self.git("commit", "-q", "-m", f"change {file}", cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def branches(self) -> set[str]:
        return set(self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines())

    def worktrees(self) -> list[str]:
        lines = self.git("worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]


def make_repository(path: Path) -> Repository:
    path.mkdir()
    repository = Repository(path)
    repository.git("init", "-q", "-b", "main")
    repository.commit("sub/deep/file.txt", "one\n")
    return repository


def job_in(directory: Path | str, workspace: str = "worktree", **choices: Any) -> Job:
    return pending(workdir=str(directory), workspace=workspace, **choices)
