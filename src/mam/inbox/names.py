"""The names of a dropped file in each state, and the meaning of the directories above it."""

from __future__ import annotations

import os

from mam.config.inbox import is_repository_word
from mam.errors import BadInput
from mam.util.frozen import Frozen

PROMPT, RUNNING, DONE, ERROR = "prompt", "running", "done", "error"
PROMPT_SUFFIX = ".prompt.md"
RUNNING_SUFFIX = ".running.md"
INBOX = "inbox"
MULTI, SINGLE, FLAT = "multi-owner", "single-owner", "flat"
SLASH = "%2F"
"""How a directory name encodes the slash in a branch's name."""
LOCAL_OWNER = "local"
"""The owner of a repository that is only a local directory."""

NAME_LIMIT = 200
"""Bytes of a file name: what mam adds must fit into the 255 of a directory entry."""


class Target(Frozen):
    """The owner, repository and branch that a file's path names."""

    owner: str
    repo: str
    branch: str

    @property
    def name(self) -> str:
        return f"{self.owner}/{self.repo}"

    @property
    def path(self) -> str:
        """One directory for each part, as in the inbox: `feature/x` becomes `feature%2Fx`."""
        return os.path.join(self.owner, self.repo, self.branch.replace("/", SLASH))


def is_prompt(name: str) -> bool:
    """Editors, rsync and scp hide incomplete files behind a dot, or give them another ending."""
    return name.endswith(PROMPT_SUFFIX) and not name.startswith(".") and name != PROMPT_SUFFIX


def is_running(name: str) -> bool:
    return name.endswith(RUNNING_SUFFIX) and not name.startswith(".") and name != RUNNING_SUFFIX


def with_state(name: str, state: str) -> str:
    """The name in another state, `x.prompt.md` as `x.running.md`. A name without a state gets it before its last
    ending."""
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        return f"{name}.{state}"
    first, dot, word = stem.rpartition(".")
    return f"{first if dot and word in (PROMPT, RUNNING, DONE, ERROR) else stem}.{state}.{ending}"


def path_with_state(rel: str, state: str) -> str:
    """The same for a path."""
    folder, name = os.path.split(rel)
    return os.path.join(folder, with_state(name, state))


def with_infix(rel: str, job_id: str) -> str:
    """Another name if a foreign file has the first one: `x.done.md` as `x.1a2b3c4d.done.md`."""
    folder, name = os.path.split(rel)
    stem, _, ending = name.rpartition(".")
    first, _, state = stem.rpartition(".")
    return os.path.join(folder, f"{first}.{job_id[:8]}.{state}.{ending}")


def parse_target(rel: str, mode: str, owner: str | None, here: Target | None) -> Target:
    """The target that a path below the inbox names. BadInput states the expected form."""
    if mode == FLAT:
        assert here is not None
        return here
    folders = os.path.dirname(rel).split("/") if os.path.dirname(rel) else []
    wanted = 3 if mode == MULTI else 2
    if len(folders) < wanted:
        shape = "<owner>/<repo>/<branch>" if mode == MULTI else "<repo>/<branch>"
        where = os.path.join(INBOX, os.path.dirname(rel)).rstrip("/")
        raise BadInput(why=f"its path is too short: it belongs in {INBOX}/{shape}/ but is in {where}/")
    if mode == SINGLE:
        if owner is None:
            raise BadInput(why="single-owner mode needs `owner` in [inbox] of config.toml")
        folders = [owner, *folders]
    branch = folders[2].replace(SLASH, "/").replace(SLASH.lower(), "/")
    target = Target(owner=folders[0], repo=folders[1], branch=branch)
    for what, word in (("owner", target.owner), ("repository", target.repo)):
        if not is_repository_word(word):
            raise BadInput(why=f"{word[:80]!a} cannot be the name of {what}: letters, digits, . _ and -")
    check_branch(target.branch)
    return target


def check_branch(branch: str) -> str:
    """Accept names that git accepts and that cannot be read as an option or a path."""
    spoilt = any(ord(letter) < 33 or letter in "~^:?*[\\\"'" or ord(letter) == 127 for letter in branch)
    parts = branch.split("/")
    odd = any(not part or part.startswith((".", "-")) or part.endswith((".", ".lock")) for part in parts)
    if spoilt or odd or ".." in branch or "@{" in branch or branch == "@" or len(branch.encode(errors="replace")) > 200:
        raise BadInput(why=f"{branch[:80]!a} cannot be the name of a branch")
    try:
        branch.encode()
    except UnicodeEncodeError:
        raise BadInput(why=f"{branch[:80]!a} cannot be the name of a branch") from None
    return branch


def check_name(rel: str) -> None:
    """Reject names that are unsafe in records and on terminals."""
    try:
        rel.encode()
    except UnicodeEncodeError:
        raise BadInput(why="its path is not UTF-8; rename it") from None
    if not rel.isprintable():
        raise BadInput(why="its path has a control character; rename it")
    if len(os.path.basename(rel).encode()) > NAME_LIMIT:
        raise BadInput(why=f"its name has more than {NAME_LIMIT} bytes; give it a shorter one")
