"""A prompt file as a draft of a job, from its path, its front matter and the settings."""

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

NO_REPOSITORY = "no repository is known for {name}, so it ran in an empty directory; add one to [repos] in config.toml"


class FileDraft(Frozen):
    prompt: str
    agent: str
    choices: dict[str, Any]


def draft_from_file(content: bytes, target: Target, rel: str, settings: Settings) -> FileDraft:
    """Raises BadInput, which states how to fix the file, if it cannot become a job."""
    if len(content) > TEXT_LIMIT:
        raise BadInput(
            why=f"it is larger than {TEXT_LIMIT:,} bytes; put large data into a file and name it in the prompt"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(why=f"it is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None
    front_matter, prompt = parse(text)
    if not prompt.strip():
        raise BadInput(why="it is empty; write the task into it")
    return FileDraft(
        prompt=prompt.strip("\n"),
        agent=front_matter.agent or settings.agent,
        choices={
            **_requested_fields(front_matter, settings),
            **_workdir_fields(front_matter, target, settings),
            "inbox": {"root": settings.root, "file": rel, **target.as_dict(), **_remark(front_matter)},
            "origin_host": os.uname().nodename,
        },
    )


def _remark(front_matter: FrontMatter) -> dict[str, str]:
    return {} if front_matter.remark is None else {"remark": front_matter.remark}


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
            raise BadInput(why="flat mode keeps the branch in this repository; push and pull_request need [repos]")
        here = {"workdir": settings.here_path, "repository": {"name": target.name, "branch": target.branch}}
        return (
            {**here, "workspace": "worktree"} if front_matter.worktree is not False else {"workdir": settings.here_path}
        )
    address = settings.repos.get(target.name)
    if address is None:
        if front_matter.worktree or front_matter.push or front_matter.pull_request:
            raise BadInput(why=f"no repository is known for {target.name}; add it to [repos] in config.toml")
        return {"workspace": "fresh"}
    if front_matter.worktree is False:
        if not is_local(address):
            raise BadInput(why=f"`worktree: false` needs a repository that is a local directory; {target.name} is not")
        return {"workdir": os.path.expanduser(address), "workspace": "workdir"}
    repository = {"name": target.name, "branch": target.branch, "push": push, "pull_request": pull_request}
    return {"workspace": "worktree", "repository": repository}
