"""What a viewer can do to a job, each with the command that does the same. Pure.

An action that the state of the job or the rights of the viewer exclude stays visible and states why. The registry
decides again when it is carried out.
"""

from __future__ import annotations

import os

from mam.access.grant import ADMIN, SUBMIT
from mam.jobs.changed_files import changes_of
from mam.jobs.continuation import conversation_of
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import PENDING, WAITING
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.viewer import Viewer
    from mam.jobs.record import Job

CANCEL, RETRY, SEEN, EDIT, CONTINUE, APPLY = "cancel", "retry", "seen", "edit", "continue", "apply"
VERBS = (CANCEL, RETRY, SEEN)
"""What a button does at once, and what can be done to several jobs together."""


class Action(Frozen):
    verb: str
    label: str
    command: str
    hindrance: str = ""
    """Why it cannot be done now; empty if it can."""
    is_destructive: bool = False
    question: str = ""
    """What a script asks before a destructive act."""


def actions_of(job: Job, viewer: Viewer, *, is_retried: bool = False) -> dict[str, Action]:
    """By verb, in the order in which a page shows them."""
    short = short_id(job)
    ended = job.status.ended
    found = [
        Action(verb=RETRY, label="Retry", command=f"mam retry {short}",
               hindrance="" if ended and not is_retried else "it was retried" if ended else f"it is {job.status}"),
        Action(verb=SEEN, label="Seen", command=f"mam seen {short}",
               hindrance="" if ended and job.seen is None else "it was seen" if ended else f"it is {job.status}"),
        Action(verb=EDIT, label="Edit", command=f"mam edit {short}",
               hindrance="" if job.status in (PENDING, WAITING) else f"it is {job.status}"),
        Action(verb=CANCEL, label="Cancel", command=f"mam cancel {short}", is_destructive=True,
               question=f"Cancel job {short}? Its agent is stopped; what it did so far is kept.",
               hindrance="it has ended" if ended else ""),
    ]  # fmt: skip
    return {one.verb: _within_rights(one, job, viewer) for one in found}


def continue_hindrance(job: Job, viewer: Viewer) -> str:
    """Why work cannot be added to its conversation; empty if it can."""
    if reason := rights_hindrance(job, viewer):
        return reason
    from mam.agent_table import agent_kind

    conversation = conversation_of(job) or {}
    is_known = bool(conversation.get("session") or conversation.get("live"))
    if job.status.ended and agent_kind(job.agent).is_coding_agent and not is_known:
        return "its conversation never began; a retry starts from the beginning"
    return ""


def rights_hindrance(job: Job, viewer: Viewer) -> str:
    """Whether the viewer may change jobs at all; the registry also checks whether this one is theirs."""
    del job
    return "" if viewer.may(SUBMIT) or viewer.may(ADMIN) else "your token may only read"


def _within_rights(action: Action, job: Job, viewer: Viewer) -> Action:
    reason = rights_hindrance(job, viewer)
    return action.replace(hindrance=reason) if reason and not action.hindrance else action


def short_id(job: Job) -> str:
    return job.job_id[:ID_PREFIX_SHOWN]


def apply_action(job: Job, viewer: Viewer) -> Action | None:
    """Brings the changes into the checkout in which the job was registered; None for a job without changes to apply."""
    changes = changes_of(job)
    if not job.status.ended or changes is None or not changes.files or changes.shared:
        return None
    host = (job.run or {}).get("host")
    hindrance = ""
    if job.applied:
        hindrance = "it was applied"
    elif host != os.uname().nodename:
        hindrance = one_line(f"its changes are on {host}")
    elif job.workdir is None:
        hindrance = "it was registered in no checkout"
    elif not viewer.may(ADMIN):
        hindrance = "your token may not write into a checkout"
    return Action(verb=APPLY, label="Apply", command=f"mam apply {short_id(job)}", hindrance=hindrance)
