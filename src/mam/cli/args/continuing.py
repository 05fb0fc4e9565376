"""The options of a continuation. What is not given comes from the job that it continues."""

from __future__ import annotations

from mam.cli.args.job_options import (
    add_check_options,
    add_limit_options,
    check_choice,
    due_ms,
    trusted_script,
)
from mam.cli.render.streams import say
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.registry import Registry
    from mam.stores.port import Registration

NOT_FOR_CONTINUATIONS = (
    "agent", "label", "workdir", "fresh", "worktree", "after", "on_dependency_failure", "exclusive",
    "broker", "topic_prefix", "sign", "auth_token",
)  # fmt: skip
"""Options of a new job that a continuation takes from its conversation."""


def add_continuation_options(parser: Parser) -> None:
    add_limit_options(parser)
    add_check_options(parser)


def continuation_choices(options: Options) -> dict[str, Any]:
    """The parameters of `draft_job` that the options give."""
    for name in NOT_FOR_CONTINUATIONS:
        if getattr(options, name, None):
            option = f"--{name.replace('_', '-')}"
            raise BadInput(why=f"a continuation takes that from the job that it continues; omit {option}")
    choices = {
        "timeout_sec": options.timeout, "idle_timeout_sec": options.idle_timeout, "priority": options.priority,
        "max_retries": options.max_retries, "permissions": check_choice("--permissions", options.permissions),
        "on_idle": check_choice("--on-idle", options.on_idle), "model": options.model, "artifacts": options.artifact,
        "retry_on_exit": options.retry_on_exit or None, "validation": trusted_script(options),
        "key": options.key, "due_ms": due_ms(options),
    }  # fmt: skip
    return {name: value for name, value in choices.items() if value is not None}


def register_continuation(registry: Registry, name: str, prompt: str, choices: dict[str, Any]) -> Registration:
    """A conversation that is gone from this host is reported before anything is registered."""
    from mam.work.conversation_checks import check_can_resume_here

    old = registry.get(name)
    check_can_resume_here(old)
    registration = registry.continue_job(old.job_id, prompt=prompt, **choices)
    job = registration.job
    if registration.created and not job.status.ended and job.after:
        say(f"it starts when job {job.continues[:8] if job.continues else ''} has ended")
    return registration
