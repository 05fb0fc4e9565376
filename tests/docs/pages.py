"""Run the console examples of a page as they are written, in a terminal of their own.

In a block, a line that begins with `$ ` is a command, and the lines after it are its output. Ids, times, durations, the
user and the directory are examples; everything else is compared. A line `…` matches any number of lines. HTML comments
before a block, which readers of the page do not see, prepare it:

    <!-- afresh -->                    start with an empty directory and home
    <!-- before: COMMAND -->           run this command first
    <!-- before: ID <- COMMAND -->     the same; the page calls its output ID
    <!-- needs: PROGRAM -->            skip the page if the machine lacks this program (tools/needs.py)
    <!-- not run: WHY -->              do not run the block
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyte
from tools.session import in_terminal

from mam.machine.person import user_at_host
from tests.needs import need

ROOT = Path(__file__).resolve().parents[2]
HOME = "/home/anna"
HERE = f"{HOME}/course"
_PART = re.compile(r"^<!-- (.*?) -->$|^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8})\b")
_SAME = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b[\w.-]+@[\w.-]+:\d+\b"), "OWNER"),
    (re.compile(rf"\b(anna|{re.escape(user_at_host().partition('@')[0])})@[\w-]+\b"), "anna@HOST"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|m|h|d)\b"), "SPAN"),
    (re.compile(r"SPAN( SPAN)+"), "SPAN"),
    (re.compile(r"\b\d+\.\d+ GiB\b"), "SIZE"),
    (re.compile(r"\bpid \d+\b"), "pid N"),
    (re.compile(r"[ \t]+"), " "),
)


class Block:
    def __init__(self, kind: str, text: str, notes: list[str]) -> None:
        self.kind = kind
        self.text = text
        self.notes = notes

    @property
    def is_run(self) -> bool:
        return not any(note.startswith("not run:") for note in self.notes)

    @property
    def steps(self) -> list[tuple[str, list[str]]]:
        """Each command with the lines of its output."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> ") and found and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
            else:
                found[-1][1].append(line)
        return found


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    notes: list[str] = []
    for note, kind, text in _PART.findall(page.read_text(encoding="utf-8")):
        if note:
            notes.append(note)
        else:
            found.append(Block(kind, text, notes))
            notes = []
    return found


class Reader:
    """A user who types the commands of the page."""

    def __init__(self, folder: Path, instead: dict[str, str], programs: dict[str, str]) -> None:
        need("bash")
        self._folder = folder
        self._instead = instead
        self._programs = programs
        self._number = 0
        self.begin_afresh()

    def begin_afresh(self) -> None:
        self._number += 1
        self._home = self._folder / f"home{self._number}"
        self._here = self._home / "course"
        self._here.mkdir(parents=True)
        programs = self._home / "bin"
        programs.mkdir()
        for name, body in {"mam": f'exec "{sys.executable}" -m mam "$@"', **self._programs}.items():
            (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        self._ids: dict[str, str] = {}
        path = f"{programs}:{os.environ.get('PATH', os.defpath)}"
        env = {
            "PATH": path, "HOME": str(self._home), "TERM": "xterm-256color", "LANG": "C.UTF-8", "USER": "anna",
            "TMUX_TMPDIR": str(self._home),
        }  # fmt: skip
        self._state = self._home / ".state"
        self._state.write_text(
            "".join(f"export {name}='{value}'\n" for name, value in env.items()) + f"cd '{self._here}'\n"
        )
        self._code = 0

    def prepare(self, note: str) -> None:
        name, arrow, command = note.removeprefix("before:").strip().partition(" <- ")
        if not arrow:
            self.type(note.removeprefix("before:").strip())
            return
        shown = self.type(command).strip().splitlines()
        assert _ID.fullmatch(shown[-1]), f"{command} printed {shown}"
        self._ids[name] = shown[-1]

    def type(self, command: str) -> str:
        """Run a command; return what the terminal shows. Variables, directory and `$?` last until the next one."""
        script = (
            f'. "{self._state}"\n(exit {self._code})\n{self._real(command)}\ncode=$?\njobs -p >>"{self._state}.jobs"\n'
            f'{{ export -p; declare -p claim 2>/dev/null; echo "cd \'$PWD\'"; }} >"{self._state}"\n'
            f'echo $code >"{self._state}.code"'
        )
        shown = _on_screen(in_terminal(["bash", "-c", script], self._home, {"PATH": os.environ["PATH"]}))
        self._code = int((self._home / ".state.code").read_text())
        return shown

    def check(self, command: str, expected: list[str]) -> None:
        shown = self.type(command).splitlines()
        self._learn(expected, shown)
        wanted, got = [self._same(line) for line in expected], [self._same(line) for line in shown]
        said = "\n".join(shown)
        assert _fits(wanted, got), f"$ {command}\nprinted\n{said}\nand not\n" + "\n".join(expected)

    def end_all(self) -> None:
        """End what the page left running: its tmux server, and commands in the background."""
        for home in self._folder.glob("home*"):
            if list(home.glob("tmux-*")):
                subprocess.run(["tmux", "-L", "mam", "kill-server"], env={**os.environ, "TMUX_TMPDIR": str(home)})
        for file in self._folder.glob("home*/.state.jobs"):
            for pid in file.read_text().split():
                try:
                    os.kill(int(pid), signal.SIGTERM)
                except ProcessLookupError:
                    pass

    def _learn(self, expected: list[str], shown: list[str]) -> None:
        """Match each example id of the page with the real id."""
        examples = [one for line in expected for one in _ID.findall(line)]
        real = [one for line in shown for one in _ID.findall(line)]
        for example, one in zip(examples, real, strict=False):
            self._ids.setdefault(example, one)
        # The page may show a prefix of an id before the complete id.
        self._ids = dict(sorted(self._ids.items(), key=lambda pair: -len(pair[0])))

    def _real(self, command: str) -> str:
        for example, real in self._ids.items():
            command = command.replace(example, real).replace(example[:8], real[:8])
        for example, real in self._instead.items():
            command = command.replace(example, real)
        return command.replace(HERE, str(self._here)).replace(HOME, str(self._home))

    def _same(self, line: str) -> str:
        for example, real in self._ids.items():
            line = line.replace(real, example).replace(real[:8], example[:8])
        for example, real in self._instead.items():
            line = line.replace(real, example)
        line = line.replace(str(self._here), HERE).replace(str(self._home), HOME)
        for pattern, word in _SAME:
            line = pattern.sub(word, line)
        return line.strip()


def _on_screen(written: str) -> str:
    """The text that remains on the screen, without progress bars that were erased. Long lines are not wrapped."""
    screen = pyte.Screen(1000, written.count("\n") + 5)
    pyte.Stream(screen).feed(written.replace("\n", "\r\n"))
    return "\n".join(line.rstrip() for line in screen.display).rstrip("\n")


def _fits(wanted: list[str], got: list[str]) -> bool:
    if not wanted:
        return not got
    if wanted[0] == "…":
        return any(_fits(wanted[1:], got[at:]) for at in range(len(got) + 1))
    return bool(got) and wanted[0] == got[0] and _fits(wanted[1:], got[1:])
