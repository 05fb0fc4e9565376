"""The asker of a hook in a live session. It waits on the session's directory, not on a worker, and outlives workers.

A session also gets prompts that no job caused, so it asks only while a job is assigned that may ask.
"""

from __future__ import annotations

import os

from mam.jobs.input_rules import is_session_id
from mam.machine.processes import identify
from mam.stores.file_watch import DirectoryWatch, WatchFilter
from mam.util.state_dir import make_private
from mam.work.asking.port import LOOK_SECONDS, WITHDRAWN, Decision
from mam.work.asking.session_files import (
    SAYS,
    Request,
    directory_of,
    read_decision,
    remove_request,
    write_request,
)
from mam.work.live.assignment import read_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mam.jobs.question import Draft

_RENAMED = 0x80


def session_asker(environ: Mapping[str, str]) -> SessionAsker | None:
    """For a process of a live session that has a job which may ask; None elsewhere."""
    root, generation = environ.get("MAM_SESSION_DIR", ""), environ.get("MAM_GENERATION", "")
    if not os.path.isabs(root) or not is_session_id(generation):
        return None
    assignment = read_assignment(root, generation)
    return SessionAsker(root, generation, assignment.job_id) if assignment.is_open and assignment.may_ask else None


class SessionAsker:
    def __init__(self, root: str, generation: str, job_id: str) -> None:
        self._root = root
        self._generation = generation
        self._job_id = job_id

    def decide(self, draft: Draft, is_over: Callable[[], bool] = lambda: False) -> Decision:
        """Withdrawn also when the job has left the session: its turn has ended without an answer."""
        process = identify(os.getpid())
        assert process is not None
        name = os.urandom(8).hex()
        directory = make_private(directory_of(self._root))
        says = os.fsencode(name + SAYS)
        watch = DirectoryWatch(directory, WatchFilter(events=_RENAMED, matches=lambda found: found == says))
        try:
            write_request(self._root, Request(name=name, job_id=self._job_id, process=process, draft=draft))
            while not (is_over() or self._has_left()):
                decision = read_decision(self._root, name)
                if decision is not None:
                    return decision
                watch.wait(LOOK_SECONDS)
            return Decision(outcome=WITHDRAWN)
        finally:
            watch.close()
            remove_request(self._root, name)

    def _has_left(self) -> bool:
        assignment = read_assignment(self._root, self._generation)
        return not assignment.is_open or assignment.job_id != self._job_id
