"""Whether the coding agents can be used here: installed, which version, and whether the options that mam uses are still
there. Vendors rename options; it is better to hear so before a job does."""

from __future__ import annotations

import os
import re
import subprocess
from importlib import import_module

from mam.machine.environment import find_program, without_secrets
from mam.util.frozen import Frozen
from mam.work.adapters import CODING_AGENTS
from mam.work.reports.report import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

OK, MISSING, BROKEN, UNFIT = "ok", "not installed", "does not run", "other options"
_LONGEST = 30.0
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*[\w.+-]*")


class AgentCheck(Frozen):
    agent: str
    state: str
    program: str | None = None
    version: str | None = None
    absent: list[str] = []  # noqa: RUF012 - nothing writes into it
    """Options that mam uses and the program's help does not name."""
    advice: str | None = None
    """What to do about it."""

    @property
    def is_usable(self) -> bool:
        return self.state == OK


def check_agent(agent: str) -> AgentCheck:
    module = import_module(CODING_AGENTS[agent])
    program = find_program(module.PROGRAM, os.environ)
    install = f"npm install -g {module.PACKAGE}"
    if program is None:
        return AgentCheck(agent=agent, state=MISSING, advice=f"`{install}` installs it")
    told, problem = _ask(program, ("--version",))
    if problem is not None:
        return AgentCheck(agent=agent, state=BROKEN, program=program, advice=f"{problem}; `{install}` installs it anew")
    found = _VERSION.search(told)
    known = AgentCheck(agent=agent, state=OK, program=program, version=found[0] if found else None)
    return _with_options(known, module, program, install)


def _with_options(known: AgentCheck, module: ModuleType, program: str, install: str) -> AgentCheck:
    text = ""
    for arguments in module.HELP:
        told, problem = _ask(program, arguments)
        if problem is not None:
            return known.replace(state=BROKEN, advice=f"{problem}; `{install}` installs it anew")
        text += told
    absent = [flag for flag in module.FLAGS if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text)]
    if not absent:
        return known
    advice = f"this version has no {', '.join(absent)}; `{install}@latest` brings it up to date"
    return known.replace(state=UNFIT, absent=absent, advice=advice)


def _ask(program: str, arguments: tuple[str, ...]) -> tuple[str, str | None]:
    """What it prints, on whichever stream, and what is wrong if it does not do even that."""
    try:
        ran = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST, cwd="/",
            env=without_secrets(os.environ),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"`{os.path.basename(program)} {' '.join(arguments)}` did not answer within {_LONGEST:.0f} s"
    except OSError as error:
        return "", f"it cannot be started ({error.strerror})"
    text = (ran.stdout + b"\n" + ran.stderr)[: 1 << 20].decode("utf-8", "replace")
    if ran.returncode:
        last = one_line(text.strip().splitlines()[-1] if text.strip() else "", 120) or f"exit code {ran.returncode}"
        return text, f"`{os.path.basename(program)} {' '.join(arguments)}` failed: {last}"
    return text, None
