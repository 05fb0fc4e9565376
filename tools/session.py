"""A console session for the README: real commands in a real terminal, with the accidents of this run taken out.

Ids, times, the user, the host and the folder differ from run to run and are replaced by fixed examples, so that the
same product always gives the same text. Everything else is what the command printed.
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
"""What the ids of the session's jobs are called, in the order in which the jobs are registered."""
SORTING, DATES, SYLLABUS, COUNTING = (example[:8] for example in EXAMPLE_IDS)

EXAMPLE_TIMES = (
    "2026-06-19T09:41:25.250Z",
    "2026-06-19T09:41:25.250Z",
    "2026-06-19T09:30:00Z",
    "2026-06-19T09:31:12Z",
    "2026-06-19T09:36:40Z",
    "2026-06-19T09:40:55Z",
    "2026-06-19T09:40:55Z",
)
"""What the times in the session's output are called, in the order in which they are printed."""

SESSION: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Hand out work. The first job makes the store; each command prints the id and nothing else on stdout.",
        (
            'mam register "Write ten exercises about sorting" --agent codex --artifact sorting.md',
            'mam register "Look up the exam dates" --agent shell',
            'mam register "Review the syllabus" --agent claude-code --agent-session tmux:claude --priority 5',
            "mam list",
        ),
    ),
    (
        "Work. The variables say which job and which claim; the verbs of a worker read them.",
        (
            "claim=$(mam pick --agent-session codex --export) && export $claim",
            'mam publish progress --detail "seven of ten are written"',
            'mam complete --result "ten of them, in sorting.md"',
            "echo $?",
            'echo "1. Sort 3, 1, 2." > sorting.md',
            'mam complete --result "ten of them, in sorting.md"',
            f"mam result {SORTING}",
        ),
    ),
    (
        "Fail. What may work later waits and is tried again, and `explain` says when and why.",
        (
            "claim=$(mam pick --agent-session shell --export) && export $claim",
            'mam fail --retryable --reason "the server is down"',
            f"mam explain {DATES}",
        ),
    ),
    (
        "Call off. Whoever still works on it is told at its next word: exit 4, and nothing has changed.",
        (
            "claim=$(mam pick --agent-session tmux:claude --export) && export $claim",
            f'mam cancel {SYLLABUS} --reason "the course is full"',
            "mam complete",
            "echo $?",
        ),
    ),
    (
        "Look. `wait` ends when all have ended; its exit code says how: 7 for an error, else 8 for a cancelled one.",
        (
            f"mam wait {SORTING} {SYLLABUS}",
            "echo $?",
            "mam list --status completed,waiting",
            f"mam logs {SORTING}",
            "mam where",
        ),
    ),
    (
        "Or let mam do the work. A worker runs the agent, watches it, and looks at what it left before believing it.\n"
        "`mam run -- COMMAND` is all of it in one command.",
        (
            'mam register "wc -l < sorting.md | tee lines.txt" --agent shell -s counting --artifact lines.txt',
            "mam worker --agent-session counting --once",
            f"mam output {COUNTING}",
            f"mam status {COUNTING}",
        ),
    ),
)

_ID = re.compile(r"\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
_AGE = re.compile(r"(?<=\S) +\d{1,2}[sm](?=  \S)")
_OWNER = re.compile(r"\b[\w.-]+@[\w.-]+:\d+\b")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def readme_session() -> str:
    """The session as Markdown. A machine so busy that the retry is due before it is explained gets another chance."""
    shown = _session()
    return shown if "That time has come" not in shown else _session()


def _session() -> str:
    with tempfile.TemporaryDirectory(prefix="mam-docs-") as folder:
        shell = Shell(Path(folder).resolve())
        shown = "\n\n".join(f"{prose}\n\n```console\n{_group(shell, lines)}```" for prose, lines in SESSION)
    if shell.examples.times_used != len(EXAMPLE_TIMES):
        raise SystemExit(f"the session prints {shell.examples.times_used} times, EXAMPLE_TIMES has others")
    return shown + "\n"


def _group(shell: Shell, lines: tuple[str, ...]) -> str:
    return "".join(f"$ {line}\n{shell.run(line)}" for line in lines)


class Examples:
    """Which accident is called what."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._ids: dict[str, str] = {}
        self.times_used = 0

    def real(self, line: str) -> str:
        """A command as shown, with the ids of this run."""
        for real, example in self._ids.items():
            line = line.replace(example[:8], real[:8])
        return line

    def shown(self, output: str) -> str:
        """What a command printed, with the examples."""
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
    """One shell in one terminal, a command at a time: exported variables and `$?` last from one to the next."""

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
        """What the terminal shows of it, without colours."""
        state = self._here.parent / "state"
        script = (
            f'(exit {self._code})\n{self.examples.real(line)}\ncode=$?\nprintf "%s\\n" '
            f'"$code" "${{MAM_JOB_ID-}}" "${{MAM_ATTEMPT-}}" "${{MAM_CLAIM-}}" >"{state}"'
        )
        shown = in_terminal(["sh", "-c", script], self._here, self._env)
        code, job, attempt, claim = state.read_text().splitlines()
        self._code = int(code)
        if job:
            self._env.update(MAM_JOB_ID=job, MAM_ATTEMPT=attempt, MAM_CLAIM=claim)
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
                break  # how Linux says that the last writer has closed the terminal
            if not piece:
                break
            shown += piece
        process.wait(PATIENCE)
    os.close(master)
    return shown.decode().replace("\r\n", "\n")
