"""The skill that teaches an agent to use mam, and the files where agents read skills.

Claude Code reads `.claude/skills`, Codex reads `.agents/skills`, OpenCode reads both, so mam writes both.
"""

from __future__ import annotations

import os

from mam.agent_table import CODING_AGENTS
from mam.errors import Refused
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agent_table import AgentKind

NAME, FILE = "mam", "SKILL.md"
NEW, SAME, DIFFERENT, FOREIGN = "new", "same", "different", "foreign"
"""Missing; present with the same text; present with another text; present and not a regular file."""


class SkillTarget(Frozen):
    path: str
    found: str


def skill_text() -> str:
    """From the installed package, else from the source tree."""
    own = os.path.dirname(os.path.abspath(__file__))
    for base in (own, os.path.dirname(os.path.dirname(own))):
        try:
            with open(os.path.join(base, "skills", NAME, FILE), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            continue
    raise Refused(why="this installation of mam lacks its skill; install mam again")


def skill_targets(*, user: bool, directory: str) -> list[SkillTarget]:
    readers = [kind for kind in CODING_AGENTS.values() if kind.skills]
    bases = [_user_base(kind) if user else os.path.join(directory, kind.skills) for kind in readers]
    return [_inspect(os.path.join(base, "skills", NAME, FILE)) for base in bases]


def _user_base(kind: AgentKind) -> str:
    is_own = kind.skills == kind.config_directory
    return kind.home() if is_own else os.path.join(os.path.expanduser("~"), kind.skills)


def project_root(directory: str) -> str:
    """The nearest directory upward that is a git repository, else this one."""
    at = os.path.abspath(directory)
    while not os.path.exists(os.path.join(at, ".git")):
        if os.path.dirname(at) == at:
            return os.path.abspath(directory)
        at = os.path.dirname(at)
    return at


def write_skill(path: str) -> None:
    """Replaces the file atomically."""
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
