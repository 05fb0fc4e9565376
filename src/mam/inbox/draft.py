"""A prompt file as a job: what its path, its front matter and the settings say, made the words of a draft."""

from __future__ import annotations

import os

from mam.errors import BadInput
from mam.inbox.front_matter import parse
from mam.jobs.input_rules import TEXT_LIMIT
from mam.util.frozen import Frozen
from mam.work.git.mirrors import is_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.inbox.front_matter import FrontMatter
    from mam.inbox.names import Target
    from mam.inbox.settings import Settings

NO_REPOSITORY = "no repository is known for {name}, so it ran in an empty directory; [repos] in config.toml names one"


class FileDraft(Frozen):
    prompt: str
    agent: str
    choices: dict[str, Any]


def draft_from_file(content: bytes, target: Target, rel: str, settings: Settings) -> FileDraft:
    """BadInput says what to do about a file that cannot be a job."""
    if len(content) > TEXT_LIMIT:
        raise BadInput(
            why=f"it is larger than {TEXT_LIMIT:,} bytes; put what is large into a file, and let the prompt name it"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(why=f"it is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None
    front_matter, prompt = parse(text)
    if not prompt.strip():
        raise BadInput(why="it is empty; write what shall be done")
    return FileDraft(
        prompt=prompt.strip("\n"),
        agent=front_matter.agent or settings.agent,
        choices={
            **_requested_fields(front_matter, settings),
            **_workdir_fields(front_matter, target, settings),
            "inbox": {"root": settings.root, "file": rel, **target.as_dict()},
            "origin_host": os.uname().nodename,
        },
    )


def _requested_fields(front_matter: FrontMatter, settings: Settings) -> dict[str, Any]:
    asked = {
        "priority": front_matter.priority,
        "artifacts": front_matter.artifacts,
        "timeout_sec": front_matter.timeout,
        "idle_timeout_sec": front_matter.idle_timeout,
        "after": front_matter.after,
        "due_ms": front_matter.at,
    }
    return {
        **{name: value for name, value in asked.items() if value is not None},
        "label": front_matter.label or settings.label,
        "permissions": front_matter.permissions or settings.permissions,
        "max_retries": settings.max_retries if front_matter.retries is None else front_matter.retries,
        "on_idle": settings.on_idle,
    }


def _workdir_fields(front_matter: FrontMatter, target: Target, settings: Settings) -> dict[str, Any]:
    push = settings.push if front_matter.push is None else front_matter.push
    pull_request = settings.pull_request if front_matter.pull_request is None else front_matter.pull_request
    if settings.here_path is not None:
        if push or pull_request:
            raise BadInput(
                why="flat mode leaves the branch in this very repository; push and pull_request are for [repos]"
            )
        here = {"workdir": settings.here_path, "repository": {"name": target.name, "branch": target.branch}}
        return (
            {**here, "workspace": "worktree"} if front_matter.worktree is not False else {"workdir": settings.here_path}
        )
    address = settings.repos.get(target.name)
    if address is None:
        if front_matter.worktree or front_matter.push or front_matter.pull_request:
            raise BadInput(why=f"no repository is known for {target.name}; [repos] in config.toml names it")
        return {"workspace": "fresh"}
    if front_matter.worktree is False:
        if not is_local(address):
            raise BadInput(why=f"`worktree: false` is for a repository that is a directory here; {target.name} is not")
        return {"workdir": os.path.expanduser(address), "workspace": "workdir"}
    repository = {"name": target.name, "branch": target.branch, "push": push, "pull_request": pull_request}
    return {"workspace": "worktree", "repository": repository}
