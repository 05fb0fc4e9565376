"""Askers that wait at a door for the answer to their question."""

from __future__ import annotations

import time

from mam.door_client import PARK_SECONDS
from mam.errors import BadInput
from mam.work.door.handlers import question_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar

    from mam.work.door.handlers import DoorRequest, DoorScope

    Json = dict[str, Any]


class ParkedQuestion:
    """One parked request; it has the methods of ParkedWait."""

    NOTHING: ClassVar[Json] = {"ok": True, "question": None}
    is_for_children = False

    def __init__(self, scope: DoorScope, request: DoorRequest) -> None:
        self._asker = scope.asker
        self._number = question_number(request)
        self.seen = {scope.job_id: ""}
        longest = request.fields.get("longest", PARK_SECONDS)
        if type(longest) not in (int, float) or not 0 <= longest <= PARK_SECONDS:
            raise BadInput(why=f"longest must be a number of seconds, at most {PARK_SECONDS:g}")
        self.ends = time.monotonic() + longest

    def changes(self, _job_ids: Iterable[str]) -> Json | None:
        """The question once it is closed."""
        question = self._asker.find(self._number)
        if question.is_open:
            return None
        self._asker.learned(question)
        return {"ok": True, "question": question.as_dict()}

    def abandon(self) -> None:
        self._asker.abandon(self._number)
