"""Check the programs of agents and sessions, and whether open jobs can run here."""

from __future__ import annotations

import os
import subprocess

from mam.agent_table import CODING_AGENTS
from mam.doctor.finding import count, fine, note
from mam.machine.environment import find_program, without_secrets
from mam.work.adapters import known_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

PROGRAMS = {
    "git": ("git", "jobs in worktrees need it", "--version"),
    "tmux": ("tmux", "live sessions run in it", "-V"),
    **{name: (kind.program, f"jobs for {name} need it", "--version") for name, kind in CODING_AGENTS.items()},
}
ANSWER_SECONDS = 20.0
NEEDED_ALWAYS = ("git", "tmux")


def check(context: Context) -> Iterator[Finding]:
    found, missing = [], []
    for name, (program, _, how) in PROGRAMS.items():
        path = find_program(program, os.environ)
        if path is None:
            missing.append(name)
        else:
            found.append(f"{program} {_version(path, how)}".strip())
    if found:
        yield fine(", ".join(found))
    for name in missing:
        if name in NEEDED_ALWAYS:
            program, why, _ = PROGRAMS[name]
            yield note(f"{program} is not installed", why, f"apt-get install {program}")
    yield from _waiting(context, missing)


def _waiting(context: Context, missing: list[str]) -> Iterator[Finding]:
    """Only a note, because a worker on another host may have the program."""
    survey = context.survey()
    known = known_agents(context.config)
    for agent, number in survey.open_agents.items() if survey is not None else ():
        if agent in missing or (agent not in known and agent not in PROGRAMS):
            why = "its program is not installed" if agent in missing else "mam has no adapter for it"
            yield note(
                f"{count(number, 'open job')} for {agent}: {why}",
                "a worker on this host cannot run them",
                f"mam config set commands.{agent}.argv '[\"{agent}\"]'" if agent not in missing else None,
            )


def _version(path: str, how: str) -> str:
    """The first word of the output that begins with a digit."""
    try:
        asked = subprocess.run(
            [path, how], stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_SECONDS, check=False,
            env=without_secrets(os.environ), cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "(does not answer)"
    lines = asked.stdout.decode(errors="replace").split("\n")
    words = [word for word in lines[0].split() if word[:1].isdigit()]
    return words[0][:20] if words else ""
