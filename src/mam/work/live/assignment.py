"""The file beside a session that says which job the session works on. After a worker is killed, the next one reads it.

It is written before the line is typed and after the session has accepted it, so that a line is never typed twice. The
agent's own `mam complete JOB` finds in it the door of the worker that waits for it.
"""

from __future__ import annotations

import os

from mam.stores.private_files import read_json_file, replace_json_file
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

ASSIGNMENT_FILE = "current.json"
TYPING, HANDED, ENDED, INTERRUPTED = "typing", "handed", "ended", "interrupted"
"""The line is being typed; the session has accepted it; the job is over; mam interrupted the turn, whose end no hook
reports."""
OPEN = (TYPING, HANDED)


class Assignment(Frozen):
    generation_id: str
    job_id: str = ""
    attempt: int = 0
    claim_id: str = ""
    mark: str = ""
    turn: str = ENDED
    turn_name: str = ""
    """The agent's own name of the turn, once it is known."""
    proof: str = ""
    socket: str = ""
    served: int = 0
    """Jobs that this generation has got so far."""
    at_ms: int = 0
    may_ask: bool = False
    """Whether a hook may ask a person for the job."""

    @property
    def is_open(self) -> bool:
        return self.turn in OPEN


def read_assignment(root: str, generation_id: str) -> Assignment:
    """The assignment of this generation; an empty one if there is none, or it is damaged or of another generation."""
    found = read_json_file(os.path.join(root, ASSIGNMENT_FILE))
    fields = {name: found[name] for name in Assignment.field_names if name in found} if isinstance(found, dict) else {}
    kinds = {"attempt": int, "served": int, "at_ms": int, "may_ask": bool}
    sound = all(type(value) is kinds.get(name, str) for name, value in fields.items())
    if not sound or fields.get("generation_id") != generation_id:
        return Assignment(generation_id=generation_id)
    return Assignment(**fields)


def write_assignment(root: str, assignment: Assignment) -> None:
    value: Json = assignment.as_dict()
    replace_json_file(os.path.join(root, ASSIGNMENT_FILE), value)
