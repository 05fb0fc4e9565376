"""The skill that teaches an agent to use mam, and the places where agents look for skills.

Claude Code reads `.claude/skills`, Codex reads `.agents/skills`, OpenCode reads both; so it is put into both.
"""

from __future__ import annotations

import os

from mam.errors import Refused
from mam.util.frozen import Frozen

NAME, FILE = "mam", "SKILL.md"
NEW, SAME, DIFFERENT, FOREIGN = "new", "same", "different", "foreign"
"""Not there yet; there, and the very same; there, with another text; there, and no plain file."""


class SkillTarget(Frozen):
    path: str
    found: str


def skill_text() -> str:
    """From the installed package, else from the source tree that runs."""
    own = os.path.dirname(os.path.abspath(__file__))
    for base in (own, os.path.dirname(os.path.dirname(own))):
        try:
            with open(os.path.join(base, "skills", NAME, FILE), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            continue
    raise Refused(why="this installation of mam came without its skill; install it again")


def skill_targets(*, user: bool, directory: str) -> list[SkillTarget]:
    home = os.path.expanduser("~")
    claude = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    bases = [claude, os.path.join(home, ".agents")] if user else [
        os.path.join(directory, ".claude"), os.path.join(directory, ".agents"),
    ]  # fmt: skip
    return [_inspect(os.path.join(base, "skills", NAME, FILE)) for base in bases]


def project_root(directory: str) -> str:
    """The nearest directory upward that is a repository, else this one."""
    at = os.path.abspath(directory)
    while not os.path.exists(os.path.join(at, ".git")):
        if os.path.dirname(at) == at:
            return os.path.abspath(directory)
        at = os.path.dirname(at)
    return at


def write_skill(path: str) -> None:
    """A reader sees the old one or the new one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.urandom(6).hex()}.tmp"
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(skill_text())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _inspect(path: str) -> SkillTarget:
    if os.path.islink(path) or (os.path.lexists(path) and not os.path.isfile(path)):
        return SkillTarget(path=path, found=FOREIGN)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return SkillTarget(path=path, found=SAME if file.read() == skill_text() else DIFFERENT)
    except FileNotFoundError:
        return SkillTarget(path=path, found=NEW)
