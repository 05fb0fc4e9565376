"""The page beside a session that says which job it is at, and how far; whoever comes after a killed worker reads it.

It is written before the line is typed and after it was taken, so that a line is never typed twice for want of knowing.
The agent's own `mam complete JOB` finds there the door of the worker that waits for it.
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
"""The line is being typed; it was taken; the job is over; it was broken off, and no hook tells when that is done."""
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
    """Jobs that were handed to this generation so far."""
    at_ms: int = 0

    @property
    def is_open(self) -> bool:
        return self.turn in OPEN


def read_assignment(root: str, generation_id: str) -> Assignment:
    """That of this generation; an empty one when there is none, or it is another's, or somebody spoiled it."""
    found = read_json_file(os.path.join(root, ASSIGNMENT_FILE))
    fields = {name: found[name] for name in Assignment.field_names if name in found} if isinstance(found, dict) else {}
    kinds = {"attempt": int, "served": int, "at_ms": int}
    sound = all(type(value) is kinds.get(name, str) for name, value in fields.items())
    if not sound or fields.get("generation_id") != generation_id:
        return Assignment(generation_id=generation_id)
    return Assignment(**fields)


def write_assignment(root: str, assignment: Assignment) -> None:
    value: Json = assignment.as_dict()
    replace_json_file(os.path.join(root, ASSIGNMENT_FILE), value)
