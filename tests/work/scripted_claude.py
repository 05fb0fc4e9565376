"""A stand-in for Claude Code that keeps conversations: it prints stream-JSON, writes a session file, and runs the lines
of its brief that begin with `do: `, or what `~/.acts` names for words of its brief."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Mam
from tests.work.repositories import Repository, make_repository

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTED_CLAUDE = r"""
session=00000000-0000-4000-8000-$(printf '%012d' $$)
while [ $# -gt 0 ]; do
    case $1 in --resume) session=$2; shift ;; esac
    shift
done
brief=$(cat)
folder=${CLAUDE_CONFIG_DIR:-$HOME/.claude}/projects/x
mkdir -p "$folder"
printf '%s\n' "$brief" >>"$folder/$session.txt"
echo '{}' >>"$folder/$session.jsonl"
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\"}"
failed=false
printf '%s\n' "$brief" | sed -n 's/^do: //p' | sh || failed=true
if [ -f "$HOME/.acts" ]; then
    while IFS='|' read -r words act; do
        case $brief in *"$words"*) sh -c "$act" </dev/null || failed=true ;; esac
    done <"$HOME/.acts"
fi
said="turn $(wc -l <"$folder/$session.jsonl") done"
text="{\"content\":[{\"type\":\"text\",\"text\":\"$said\"}]}"
echo "{\"type\":\"assistant\",\"session_id\":\"$session\",\"message\":$text}"
tokens='"usage":{"input_tokens":1,"output_tokens":1}'
end="\"type\":\"result\",\"subtype\":\"success\",\"is_error\":$failed,\"result\":\"$said\""
echo "{$end,\"session_id\":\"$session\",$tokens}"
"""


AGENT = ("--agent", "claude-code")


class Project:
    """A person at a repository: `run` gives a job to the stand-in, with shell lines for it to do."""

    def __init__(self, mam: Mam, repository: Repository) -> None:
        self.mam = mam
        self.repository = repository
        self.path = repository.path
        self.sessions = mam.home / ".claude" / "projects" / "x"

    def run(self, *lines: str, words: tuple[str, ...] = ("--worktree",), code: int = 0) -> str:
        """The id of the job, which has ended."""
        ran = self.mam("run", "work\n" + "\n".join(f"do: {line}" for line in lines), *words, *AGENT, "--json")
        assert ran.code == code, ran.stderr
        return str(ran.json["job_id"])

    def queue(self, job: str, *lines: str) -> str:
        return self.mam("continue", job, "more\n" + "\n".join(f"do: {line}" for line in lines)).line

    def work(self) -> None:
        assert self.mam("worker", "-s", "claude-code", "--drain").code == 0

    def record(self, job: str) -> dict[str, object]:
        return self.mam.record(job)

    def files(self, revision: str = "HEAD") -> set[str]:
        return set(self.repository.git("ls-tree", "-r", "--name-only", revision).splitlines())


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Project:
    home, programs = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    (programs / "claude").write_text(f"#!/bin/sh\n{SCRIPTED_CLAUDE}", encoding="utf-8")
    (programs / "claude").chmod(0o755)
    (home / ".gitconfig").write_text("[user]\n\tname = Anna\n\temail = anna@example.org\n", encoding="utf-8")
    repository = make_repository(tmp_path / "shop")
    repository.commit("a.txt", "one\n")
    mam = Mam(repository.path, home)
    mam.env["PATH"] = f"{programs}:{mam.env['PATH']}"
    mam.env["CI"] = "true"  # so that no job may ask: this agent reads its brief up to the end of stdin
    return Project(mam, repository)
