"""The files through which a hook of a live session asks, beside the session's hook log.

The hook writes `ID.asks` and waits for `ID.says`; the worker of the session reads the one and writes the other. So the
hook outlives a worker: the next one finds the file and asks again. A hook that ends removes both files.
"""

from __future__ import annotations

import os

from mam.errors import BadInput
from mam.jobs.question import TEXT_LIMIT, Draft, draft_from_fields
from mam.machine.processes import ProcessId
from mam.stores.private_files import replace_json_file
from mam.util.frozen import Frozen
from mam.util.strict_json import safe_json
from mam.work.asking.port import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

ASKS_DIRECTORY = "asks"
ASKS, SAYS = ".asks", ".says"
_FILE_LIMIT = 8 * TEXT_LIMIT
"""JSON may write each byte of a text as six."""
_MOST = 64
"""Files that one look reads."""


class Request(Frozen):
    """What a hook has written."""

    name: str
    job_id: str
    process: ProcessId
    """The hook. When it ends, no process waits for the answer."""
    draft: Draft


def directory_of(root: str) -> str:
    return os.path.join(root, ASKS_DIRECTORY)


def asks_path(root: str, name: str) -> str:
    return os.path.join(directory_of(root), name + ASKS)


def says_path(root: str, name: str) -> str:
    return os.path.join(directory_of(root), name + SAYS)


def write_request(root: str, request: Request) -> None:
    fields = {"job_id": request.job_id, "process": request.process.to_json(), "draft": request.draft.as_dict()}
    replace_json_file(asks_path(root, request.name), fields)


def request_names(root: str) -> list[str]:
    try:
        found = os.listdir(directory_of(root))
    except OSError:
        return []
    return sorted(name.removesuffix(ASKS) for name in found if name.endswith(ASKS))[:_MOST]


def read_request(root: str, name: str) -> Request | None:
    """None if the file is gone or no hook of mam can have written it."""
    fields = _read(asks_path(root, name))
    if fields is None:
        return None
    process, job_id = ProcessId.from_json(fields.get("process")), fields.get("job_id")
    if process is None or not isinstance(job_id, str):
        return None
    try:
        return Request(name=name, job_id=job_id, process=process, draft=draft_from_fields(fields.get("draft")))
    except BadInput:
        return None


def write_decision(root: str, name: str, decision: Decision) -> None:
    replace_json_file(says_path(root, name), decision.as_dict())


def read_decision(root: str, name: str) -> Decision | None:
    fields = _read(says_path(root, name))
    if fields is None or not isinstance(fields.get("outcome"), str) or not fields.keys() <= set(Decision.field_names):
        return None
    return Decision(**fields)


def remove_request(root: str, name: str) -> None:
    for path in (asks_path(root, name), says_path(root, name)):
        try:
            os.unlink(path)
        except OSError:
            continue


def _read(path: str) -> Json | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = safe_json(file.read(_FILE_LIMIT))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
