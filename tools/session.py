"""Make the console session of the README: real commands in a real terminal, with stable examples for what varies.

Ids, times, the user, the host and the directory differ from run to run. The session replaces them by fixed examples, so
that the same product always gives the same text. Everything else is what the command printed.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

COLUMNS = 100
PATIENCE = 60.0
FOLDER, OWNER = "/home/anna/course", "anna@laptop:4242"

EXAMPLE_IDS = (
    "9f0c3f5e5d6c4f0e8a3d1b2c4e5f6071",
    "3c1e77ab90d84c6e8f2b5a1c7d3e6f40",
    "b41f02d96e7a4d3fa8c15b2e9d0f7c34",
    "7d20e8b15c9f4a63b0e4c8d2f1a59637",
)
"""The example ids, in the order in which the session registers its jobs."""
SORTING, DATES, SYLLABUS, LINKS = (example[:8] for example in EXAMPLE_IDS)

EXAMPLE_TIMES = (
    "2026-06-19T09:30:00Z",
    "2026-06-19T09:31:12Z",
    "2026-06-19T09:31:12Z",
    "2026-06-19T09:31:14Z",
    "2026-06-19T09:31:14Z",
    "2026-06-19T09:41:25.250Z",
    "2026-06-19T09:41:25.250Z",
)
"""The example times, in the order in which the session prints them."""

SESSION: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Register jobs. The first one creates the store. `register` prints only the id on stdout and does not wait.",
        (
            'mam register "Write ten exercises about sorting" --agent codex --artifact sorting.md',
            'mam register "Collect the exam dates" --agent opencode',
            'mam register "Review the syllabus" --agent claude-code --label tmux:claude --priority 5',
            "mam list",
        ),
    ),
    (
        "Run a worker. It claims the jobs of one label, runs the agent, checks the result and ends each job. The\n"
        "agent `shell` runs the prompt as a script.",
        (
            'mam register "echo no broken links | tee links.txt" --agent shell --artifact links.txt',
            "mam worker --label shell --once",
            f"mam output {LINKS}",
        ),
    ),
    (
        "Cancel a job, wait for jobs, read the history. The exit code of `wait` is 7 if a job ended in error,\n"
        "otherwise 8 if one was cancelled.",
        (
            f'mam cancel {SYLLABUS} --reason "the course is full"',
            f"mam wait {LINKS} {SYLLABUS}",
            "echo $?",
            f"mam logs {LINKS}",
            "mam where",
        ),
    ),
    (
        "### A worker of your own\n\n"
        "Any program can be a worker. `pick` claims a job. With `--export` it prints the job, the attempt and the\n"
        "claim id as variables, and `env` passes them to one command. They do not enter your shell's environment.",
        (
            "claim=$(mam pick --label codex --export)",
            'env $claim mam publish progress --detail "seven of ten are written"',
            'env $claim mam complete --result "ten of them, in sorting.md"',
            "echo $?",
            'echo "1. Sort 3, 1, 2." > sorting.md',
            'env $claim mam complete --result "ten of them, in sorting.md"',
            f"mam result {SORTING}",
        ),
    ),
    (
        "In practice, `env $claim ./my-agent` starts a script that contains these commands. A failure that may pass\n"
        "later is retried, and `explain` states when.",
        (
            "claim=$(mam pick --label opencode --export)",
            'env $claim mam fail --retryable --reason "the server is down"',
            f"mam explain {DATES}",
        ),
    ),
)

_ID = re.compile(r"\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
_AGE = re.compile(r"(?<=\S) +\d{1,2}[sm](?=  \S)")
_OWNER = re.compile(r"\b[\w.-]+@[\w.-]+:\d+\b")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def readme_session() -> str:
    """The session as Markdown. On a busy machine the retry may be due before `explain` runs; then it is run again."""
    shown = _session()
    return shown if "That time has passed" not in shown else _session()


def _session() -> str:
    with tempfile.TemporaryDirectory(prefix="mam-docs-") as folder:
        shell = Shell(Path(folder).resolve())
        shown = "\n\n".join(f"{prose}\n\n```console\n{_group(shell, lines)}```" for prose, lines in SESSION)
    if shell.examples.times_used != len(EXAMPLE_TIMES):
        raise SystemExit(f"the session prints {shell.examples.times_used} times, EXAMPLE_TIMES has another number")
    return shown + "\n"


def _group(shell: Shell, lines: tuple[str, ...]) -> str:
    return "".join(f"$ {line}\n{shell.run(line)}" for line in lines)


class Examples:
    """The example that replaces each id and time of this run."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._ids: dict[str, str] = {}
        self.times_used = 0

    def real(self, line: str) -> str:
        """A command of the page, with the ids of this run."""
        for real, example in self._ids.items():
            line = line.replace(example[:8], real[:8])
        return line

    def shown(self, output: str) -> str:
        """The output of a command, with the examples in place of what varies."""
        for real in _ID.findall(output):
            if real not in self._ids:
                self._ids[real] = EXAMPLE_IDS[len(self._ids)]
        for real, example in self._ids.items():
            output = output.replace(real, example).replace(real[:8], example[:8])
        output = _TIME.sub(lambda _: self._next_time(), output.replace(self._folder, FOLDER))
        output = _OWNER.sub(OWNER, re.sub(r"\bin \d+ s\b", "in 7 s", output))
        return _AGE.sub(lambda found: "2s".rjust(len(found[0])), output)

    def _next_time(self) -> str:
        self.times_used += 1
        return EXAMPLE_TIMES[self.times_used - 1]


class Shell:
    """One shell in one terminal, a command at a time. The variable `claim` and `$?` last from one to the next."""

    def __init__(self, folder: Path) -> None:
        self._here = folder / "course"
        self._here.mkdir()
        self.examples = Examples(self._here)
        programs = folder / "bin"
        programs.mkdir()
        mam = programs / "mam"
        mam.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam "$@"\n')
        mam.chmod(0o755)
        self._env = {
            "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        self._code = 0

    def run(self, line: str) -> str:
        """The text that the terminal shows, without colours."""
        state = self._here.parent / "state"
        script = f'(exit {self._code})\n{self.examples.real(line)}\nprintf "%s\\n" "$?" "${{claim-}}" >"{state}"'
        shown = in_terminal(["sh", "-c", script], self._here, self._env)
        code, claim = state.read_text().splitlines()
        self._code, self._env["claim"] = int(code), claim
        plain = "".join(f"{line.rstrip()}\n" for line in _COLOUR.sub("", shown).splitlines())
        return self.examples.shown(plain)


def in_terminal(argv: list[str], here: Path, env: dict[str, str]) -> str:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    shown = b""
    with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, cwd=here, env=env) as process:
        os.close(slave)
        while select.select([master], [], [], PATIENCE)[0]:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break  # Linux: the last writer has closed the terminal
            if not piece:
                break
            shown += piece
        process.wait(PATIENCE)
    os.close(master)
    return shown.decode().replace("\r\n", "\n")
