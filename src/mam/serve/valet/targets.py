"""Targets: the repositories and branches that prompts can be sent to."""

from __future__ import annotations

import os
from itertools import islice

from mam.errors import BadInput
from mam.inbox.names import INBOX, MULTI, SINGLE, Target, parse_target
from mam.serve.valet.problem import ValetProblem
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.config.settings import Config
    from mam.jobs.record import Json

MARKER = ".pv_inbox"
"""If any directory of the inbox has this file, only such directories are targets."""
DEFAULT_BRANCH = "main"
_LOOKED_AT = 10_000
"""Directories; an inbox with more is searched no further."""


class ValetTarget(Frozen):
    target: Target
    inbox_path: str

    def to_json(self) -> Json:
        return {
            "repo": self.target.repo, "branch": self.target.branch, "inbox_path": self.inbox_path,
            "owner": self.target.owner, "full_repo": self.target.name,
        }  # fmt: skip


def inbox_root(config: Config) -> str | None:
    root = config.inbox.get("root")
    return None if root is None else os.path.realpath(os.path.expanduser(root))


def list_targets(config: Config) -> list[ValetTarget]:
    """The directories of the configured inbox, and the repositories of `[repos]`, which are taken at their main
    branch."""
    found = {(one.target.name, one.target.branch): one for one in _inbox_targets(config)}
    named = {name for name, _ in found}
    for name in config.repos:
        owner, _, repo = name.partition("/")
        if name not in named:
            target = Target(owner=owner, repo=repo, branch=DEFAULT_BRANCH)
            found[name, DEFAULT_BRANCH] = ValetTarget(target=target, inbox_path=_path_of(config, target))
    return [found[key] for key in sorted(found)]


def find_target(config: Config, repo: str, branch: str) -> ValetTarget:
    """By the name of the repository, or owner/name."""
    found = [one for one in list_targets(config) if one.target.branch == branch and is_repo(one.target, repo)]
    if not found:
        why = f"There is no target {repo[:80]!r} with the branch {branch[:80]!r}; /api/v1/targets lists them."
        raise ValetProblem(404, why)
    if len(found) > 1:
        owners = ", ".join(one.target.name for one in found)
        raise ValetProblem(400, f"{repo[:80]!r} is ambiguous: {owners}.")
    return found[0]


def is_repo(target: Target, name: str) -> bool:
    return name in (target.repo, target.name)


def _path_of(config: Config, target: Target) -> str:
    root = inbox_root(config)
    return target.path if root is None else os.path.join(root, INBOX, target.path)


def _inbox_targets(config: Config) -> Iterator[ValetTarget]:
    root, mode = inbox_root(config), config.inbox.get("mode", MULTI)
    if root is None or mode not in (MULTI, SINGLE):
        return
    folders = list(_folders(os.path.join(root, INBOX)))
    depth = 3 if mode == MULTI else 2
    marked = [rel for rel, is_marked in folders if is_marked]
    for rel in marked or [rel for rel, _ in folders if rel.count("/") == depth - 1]:
        try:
            target = parse_target(f"{rel}/x", mode, config.inbox.get("owner"), None)
        except BadInput:
            continue  # a directory that names no repository
        yield ValetTarget(target=target, inbox_path=os.path.join(root, INBOX, rel))


def _folders(top: str) -> Iterator[tuple[str, bool]]:
    """The directories below the inbox, and whether each has the marker. Links are not followed."""
    for folder, names, files in islice(os.walk(top), _LOOKED_AT):
        names[:] = sorted(name for name in names if not name.startswith("."))
        if folder != top:
            yield os.path.relpath(folder, top), MARKER in files
