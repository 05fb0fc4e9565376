"""What is left of earlier attempts, found by what all of their processes were given: an environment that names the
job, the attempt and the store.

When worker, guardian and keeper are gone, and the agent too, nothing else leads to what it had started. Everybody is
looked at, so this is for takeovers, which are rare. Who has given itself another environment is not found, and only
Linux shows environments at all.
"""

from __future__ import annotations

import os
import sys

from mam.machine.environment import ATTEMPT, JOB, MARK
from mam.machine.processes import identity_of, list_processes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.machine.processes import ProcessId

_DIGITS = 18


class EarlierAttempts(Frozen):
    """The attempts at one job before one of them."""

    job_id: str
    attempt: int
    mark: str
    """Of the store: another one may have a job of the same id."""

    def find_orphans(self) -> list[ProcessId]:
        """Those that run now, of this user."""
        if sys.platform != "linux":
            return []
        # Who it is was seen before its environment: if its number has passed to somebody else meanwhile, nobody is hit.
        return [
            identity_of(entry) for entry in list_processes() if not entry.dead and self._is_of(_environment(entry.pid))
        ]

    def _is_of(self, environment: dict[bytes, bytes]) -> bool:
        attempt = environment.get(ATTEMPT.encode(), b"")
        return (
            environment.get(JOB.encode()) == self.job_id.encode()
            and environment.get(MARK.encode()) == self.mark.encode()
            and attempt.isdigit()
            and len(attempt) <= _DIGITS
            and int(attempt) < self.attempt
        )


def _environment(pid: int) -> dict[bytes, bytes]:
    """Empty for others' processes, those of the kernel, and those that have ended."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return {}
        with open(f"/proc/{pid}/environ", "rb") as file:
            lines = file.read().split(b"\0")
    except OSError:
        return {}
    return {name: value for name, found, value in (line.partition(b"=") for line in lines) if found}
