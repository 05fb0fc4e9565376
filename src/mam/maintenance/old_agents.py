"""Another program's directory of live sessions: the same tree as mam's own, with records of version 2 or 3."""

from __future__ import annotations

import os

from mam.agents.files_directory import FilesDirectory
from mam.agents.files_tree import LIVE_AGENTS
from mam.errors import Refused
from mam.maintenance.migration import Moved
from mam.stores.files.lock import LOCK_FILE
from mam.stores.port import Problem
from mam.stores.private_files import sync_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.acts import Act
    from mam.agents.lookup import Lookup
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord
    from mam.util.clock import Moment

SUFFIX = ".filling"


def is_agents(path: str) -> bool:
    return os.path.basename(os.path.normpath(path)) == LIVE_AGENTS or os.path.isdir(os.path.join(path, LIVE_AGENTS))


def root_of(path: str) -> str:
    """Either the tree or the `live_agents` in it may be named."""
    path = os.path.normpath(path)
    return os.path.dirname(path) if os.path.basename(path) == LIVE_AGENTS else path


def plan_agents(source: str) -> Moved:
    records, problems = _read(FilesDirectory(root_of(source)))
    return Moved(jobs=len(records), archived=0, left_behind=problems)


def copy_agents(source: str, target: str) -> Moved:
    """Into a directory that has no records yet; put in place when all of them are there."""
    records, problems = _read(FilesDirectory(root_of(source)))
    target = os.path.realpath(root_of(target))
    if _read(FilesDirectory(target))[0]:
        raise Refused(why=f"{target} is not empty; sessions are moved only into a directory that is.")
    filling = target + SUFFIX
    os.makedirs(filling, mode=0o700, exist_ok=True)
    put_all(records, FilesDirectory(filling))
    os.makedirs(target, mode=0o700, exist_ok=True)
    os.rename(os.path.join(filling, LIVE_AGENTS), os.path.join(target, LIVE_AGENTS))
    sync_directory(target)
    _remove_emptied(filling)
    return Moved(jobs=len(records), archived=0, left_behind=problems)


def _remove_emptied(filling: str) -> None:
    try:
        os.unlink(os.path.join(filling, LOCK_FILE))
        os.rmdir(filling)
    except OSError:
        pass  # another program put something there, or removed it


def put_all(records: list[AgentRecord], directory: Directory) -> None:
    """Doing it twice changes nothing."""
    for record in records:
        directory.change(record.agent_id, _placed(record))
    there, _problems = _read(directory)
    if sorted(there, key=_by_id) != sorted(records, key=_by_id):
        why = f"the sessions in {directory.address} are not the same as at the source; remove it and try again."
        raise Refused(why=why)


def _placed(record: AgentRecord) -> Act:
    def act(_look: Lookup, _now: Moment) -> AgentRecord:
        return record

    return act


def _by_id(record: AgentRecord) -> str:
    return record.agent_id


def _read(directory: Directory) -> tuple[list[AgentRecord], list[Problem]]:
    records, problems = [], []
    for lookup in directory.read_all():
        if lookup.record is not None:
            records.append(lookup.record)
        else:
            problems.append(Problem(file=f"{LIVE_AGENTS}/{lookup.agent_id}", problem=lookup.reason))
    return records, problems
