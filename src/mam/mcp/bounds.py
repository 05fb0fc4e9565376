"""The bounds of what an agent of this host may submit and answer. Pure, except for the look at a directory."""

from __future__ import annotations

import os

from mam.errors import BadInput, Refused
from mam.jobs.question import PERMISSION, QUESTION, REVIEW
from mam.jobs.rights import SHELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.config.settings import Config
    from mam.jobs.question import Question
    from mam.jobs.record import Job
    from mam.mcp.caller import Caller

FORMS = (QUESTION, REVIEW)
"""The kinds of questions that the person behind a client may answer."""


def check_agent(caller: Caller, agent: str) -> None:
    if agent == SHELL and not caller.accepts_shell:
        raise Refused(
            why="An agent cannot submit shell jobs here: that would be a shell without permission."
            " The user can start this server with `mam mcp --accept shell`."
        )


def check_continues(caller: Caller, old: Job) -> None:
    """A continuation has the rights of the job that it continues."""
    if caller.accepts_shell or (old.agent != SHELL and old.permissions != "full"):
        return
    what = "runs a shell" if old.agent == SHELL else "has full permissions"
    raise Refused(
        why=f"Job {old.job_id} {what}, and an agent cannot add to it here. The user can:"
        f" `mam continue {old.job_id[:8]}`, or start this server with `mam mcp --accept shell`."
    )


def check_workdir(caller: Caller, path: str) -> str:
    """Inside the directory of the caller, or one that the user accepted: a job may edit all of its directory."""
    from mam.jobs.input_rules import PATH_LIMIT, check_text

    check_text("workdir", path, PATH_LIMIT)
    whole = os.path.realpath(os.path.join(caller.directory, os.path.expanduser(path)))
    allowed = (caller.directory, *caller.accepted_directories)
    if not any(whole == one or whole.startswith(f"{one.rstrip('/')}/") for one in allowed):
        raise Refused(
            why=f"{whole} is outside of {', '.join(allowed)}."
            f" The user can start this server with `mam mcp --accept {whole}`."
        )
    if not os.path.isdir(whole):
        raise BadInput(why=f"the workdir {whole} is not a directory")
    return whole


def may_answer(caller: Caller, question: Question, config: Callable[[], Config]) -> bool:
    """Inside a job an agent must not decide for a person. A permission needs the user's setting."""
    if not (caller.may_write and caller.may_answer):
        return False
    return question.kind in FORMS or (question.kind == PERMISSION and permissions_by_form(config()))


def permissions_by_form(config: Config) -> bool:
    return config.questions.get("mcp_permission") is True
