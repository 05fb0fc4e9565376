"""Where the changes of an ended job are, and what to type next."""

from __future__ import annotations

from mam.cli.render.text import one_line
from mam.jobs.changed_files import changes_of
from mam.jobs.continuation import conversation_of
from mam.jobs.input_rules import ID_PREFIX_SHOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json


def closing_lines(job: Job) -> list[str]:
    """The lines below the outcome of a run; none for a job without changes and without a conversation."""
    changes = changes_of(job)
    lines = []
    if changes is not None and changes.files:
        lines.append(one_line(changes.summary()))
    steps = next_steps(job)
    return [*lines, f"next: {' · '.join(steps)}"] if steps else lines


def next_steps(job: Job) -> list[str]:
    """The commands that make sense for the changes and the conversation of an ended job."""
    short, changes = job.job_id[:ID_PREFIX_SHOWN], changes_of(job)
    steps = []
    if changes is not None and changes.files:
        steps.append(f"mam diff {short}")
        if not changes.shared:
            steps.append(f"mam apply {short}")
    if (conversation_of(job) or {}).get("session") is not None:
        steps.append(f'mam continue {short} "…"')
    return steps


def changes_json(job: Job) -> Json | None:
    """For the output of a command."""
    changes = changes_of(job)
    return None if changes is None else {**changes.as_dict(), "summary": changes.summary()}
