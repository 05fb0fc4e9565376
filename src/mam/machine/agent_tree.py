"""Whether this process runs inside an agent: some commands are for a person only.

Under one user id this is a safeguard and not a security boundary (SECURITY.md): an agent that wants to can leave its
process tree. On Linux, forking twice and clearing the environment does not suffice, because the orphans of an agent
become children of its keeper.
"""

from __future__ import annotations

import os

from mam.errors import Refused
from mam.machine.environment import MARK, SOCKET

GUARDIAN, KEEPER = "mam-guardian", "mam-keeper"
"""The names of the processes that start agents and adopt their orphans."""
_LONGEST_CHAIN = 64
_VARIABLES = (SOCKET, MARK, "MAM_SESSION_DIR")
_MARKS = tuple(f"{name}=".encode() for name in _VARIABLES)


def check_outside_agents(verb: str) -> None:
    """Refuses a command that only a person may run."""
    if is_inside_agent():
        raise Refused(why=f"`mam {verb}` does not work inside a job: only a person can do this")


def is_inside_agent() -> bool:
    """Whether this process or one of its ancestors has the environment of a job, or is the keeper of an agent."""
    if any(os.environ.get(name) for name in _VARIABLES):
        return True
    pid = os.getppid()
    for _ in range(_LONGEST_CHAIN):
        if pid <= 1:
            return False
        if any(line.startswith(_MARKS) for line in _environment(pid).split(b"\0")) or _name(pid) in (GUARDIAN, KEEPER):
            return True
        pid = _parent(pid)
    return False


def variable_of_agent(name: str) -> str | None:
    """A variable of the job inside which this process runs. A program between it and the agent may have removed the
    variable from the environment, so those of its ancestors count too."""
    if os.environ.get(name):
        return os.environ[name]
    pid = os.getppid()
    for _ in range(_LONGEST_CHAIN):
        if pid <= 1:
            return None
        for line in _environment(pid).split(b"\0"):
            if line.startswith(f"{name}=".encode()):
                return line.partition(b"=")[2].decode(errors="replace") or None
        pid = _parent(pid)
    return None


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
