"""Programs that agents and sessions need, and whether the jobs that wait could run here."""

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
    "tmux": ("tmux", "live sessions of agents run in it", "-V"),
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
    """A worker on another host may have what is missing here, so this is only worth knowing."""
    survey = context.survey()
    known = known_agents(context.config)
    for agent, number in survey.open_agents.items() if survey is not None else ():
        if agent in missing or (agent not in known and agent not in PROGRAMS):
            why = "its program is not here" if agent in missing else "mam does not know how to run it"
            yield note(
                f"{count(number, 'open job')} for {agent}: {why}",
                "a worker here cannot run them; a shell loop, a person or another host may",
                f"mam config set commands.{agent}.argv '[\"{agent}\"]'" if agent not in missing else None,
            )


def _version(path: str, how: str) -> str:
    """The first line of what it says about itself, without its own name."""
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
