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

    from mam.inbox.front_matter import Wishes
    from mam.inbox.names import Target
    from mam.inbox.settings import Settings

NO_REPOSITORY = "no repository is known for {name}, so it ran in an empty directory; [repos] in config.toml names one"


class Draft(Frozen):
    prompt: str
    agent: str
    choices: dict[str, Any]


def drafted(content: bytes, target: Target, rel: str, settings: Settings) -> Draft:
    """BadInput says what to do about a file that cannot be a job."""
    if len(content) > TEXT_LIMIT:
        raise BadInput(
            why=f"it is larger than {TEXT_LIMIT:,} bytes; put what is large into a file, and let the prompt name it"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(why=f"it is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None
    wishes, prompt = parse(text)
    if not prompt.strip():
        raise BadInput(why="it is empty; write what shall be done")
    return Draft(
        prompt=prompt.strip("\n"),
        agent=wishes.agent or settings.agent,
        choices={
            **_asked(wishes, settings),
            **_place(wishes, target, settings),
            "inbox": {"root": settings.root, "file": rel, **target.as_dict()},
            "origin_host": os.uname().nodename,
        },
    )


def _asked(wishes: Wishes, settings: Settings) -> dict[str, Any]:
    asked = {
        "priority": wishes.priority,
        "artifacts": wishes.artifacts,
        "timeout_sec": wishes.timeout,
        "idle_timeout_sec": wishes.idle_timeout,
        "after": wishes.after,
        "due_ms": wishes.at,
    }
    return {
        **{name: value for name, value in asked.items() if value is not None},
        "label": wishes.label or settings.label,
        "permissions": wishes.permissions or settings.permissions,
        "max_retries": settings.max_retries if wishes.retries is None else wishes.retries,
        "on_idle": settings.on_idle,
    }


def _place(wishes: Wishes, target: Target, settings: Settings) -> dict[str, Any]:
    push = settings.push if wishes.push is None else wishes.push
    pull_request = settings.pull_request if wishes.pull_request is None else wishes.pull_request
    if settings.here_path is not None:
        if push or pull_request:
            raise BadInput(
                why="flat mode leaves the branch in this very repository; push and pull_request are for [repos]"
            )
        here = {"workdir": settings.here_path, "repository": {"name": target.name, "branch": target.branch}}
        return {**here, "workspace": "worktree"} if wishes.worktree is not False else {"workdir": settings.here_path}
    address = settings.repos.get(target.name)
    if address is None:
        if wishes.worktree or wishes.push or wishes.pull_request:
            raise BadInput(why=f"no repository is known for {target.name}; [repos] in config.toml names it")
        return {"workspace": "fresh"}
    if wishes.worktree is False:
        if not is_local(address):
            raise BadInput(why=f"`worktree: false` is for a repository that is a directory here; {target.name} is not")
        return {"workdir": os.path.expanduser(address), "workspace": "workdir"}
    repository = {"name": target.name, "branch": target.branch, "push": push, "pull_request": pull_request}
    return {"workspace": "worktree", "repository": repository}
