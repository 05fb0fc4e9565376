"""Checks whether the coding agents can be used on this machine: program, version, and the options that mam uses.

Vendors rename options; `mam agents check` reports it before a job fails of it.
"""

from __future__ import annotations

import os
import re
import subprocess
from importlib import import_module

from mam.agent_table import CODING_AGENTS
from mam.machine.environment import find_program, without_secrets
from mam.util.frozen import Frozen
from mam.work.reports.report import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

OK, MISSING, BROKEN, UNFIT = "ok", "not installed", "does not run", "other options"
_TIMEOUT_SECONDS = 30.0
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*[\w.+-]*")


class AgentCheck(Frozen):
    agent: str
    state: str
    program: str | None = None
    version: str | None = None
    absent: list[str] = []  # noqa: RUF012 - nothing writes into it
    """Options that mam uses and that are missing from the program's help."""
    advice: str | None = None
    """What to do about it."""
    tested: str | None = None
    """The newest version that mam was tested with, if the installed one is newer."""

    @property
    def is_usable(self) -> bool:
        return self.state == OK


def check_agent(agent: str) -> AgentCheck:
    kind = CODING_AGENTS[agent]
    program = find_program(kind.program, os.environ)
    install = f"npm install -g {kind.package}"
    if program is None:
        return AgentCheck(agent=agent, state=MISSING, advice=f"`{install}` installs it")
    printed, problem = _run(program, ("--version",))
    if problem is not None:
        advice = f"{problem}; `{install}` installs it again"
        return AgentCheck(agent=agent, state=BROKEN, program=program, advice=advice)
    found = _VERSION.search(printed)
    version = found[0] if found else None
    newest = kind.tested if version is not None and is_newer(version, kind.tested) else None
    known = AgentCheck(agent=agent, state=OK, program=program, version=version, tested=newest)
    return _check_options(known, import_module(kind.adapter), program, install)


def is_newer(version: str, tested: str) -> bool:
    """Compares the numbers of two versions; a suffix such as `-beta` does not count."""
    one, other = ([int(part) for part in re.findall(r"\d+", text.partition("-")[0])] for text in (version, tested))
    return one > other


def unknown_options(program: str, help_calls: Iterable[tuple[str, ...]], options: Iterable[str]) -> list[str]:
    """Those that the program's help does not name; none if it gives no help, so that the agent itself decides."""
    text = ""
    for arguments in help_calls:
        printed, problem = _run(program, arguments)
        if problem is not None:
            return []
        text += printed
    return _absent(options, text)


def _absent(options: Iterable[str], text: str) -> list[str]:
    return [option for option in options if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)]


def _check_options(known: AgentCheck, module: ModuleType, program: str, install: str) -> AgentCheck:
    text = ""
    for arguments in module.HELP:
        printed, problem = _run(program, arguments)
        if problem is not None:
            return known.replace(state=BROKEN, advice=f"{problem}; `{install}` installs it again")
        text += printed
    absent = _absent(module.FLAGS, text)
    if not absent:
        return known
    advice = f"this version has no {', '.join(absent)}; `{install}@latest` brings it up to date"
    return known.replace(state=UNFIT, absent=absent, advice=advice)


def _run(program: str, arguments: tuple[str, ...]) -> tuple[str, str | None]:
    """Its output on both streams, and the problem if it did not run or failed."""
    try:
        ran = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_SECONDS, cwd="/",
            env=without_secrets(os.environ),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"`{os.path.basename(program)} {' '.join(arguments)}` did not answer within {_TIMEOUT_SECONDS:.0f} s"
    except OSError as error:
        return "", f"it cannot be started ({error.strerror})"
    text = (ran.stdout + b"\n" + ran.stderr)[: 1 << 20].decode("utf-8", "replace")
    if ran.returncode:
        last = one_line(text.strip().splitlines()[-1] if text.strip() else "", 120) or f"exit code {ran.returncode}"
        return text, f"`{os.path.basename(program)} {' '.join(arguments)}` failed: {last}"
    return text, None
