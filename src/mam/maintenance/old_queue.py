"""A queue of prompt files as `<root>/<job_id>/{job.json,state}`; each becomes a job that keeps all it knew."""

from __future__ import annotations

import os

from mam.errors import BadRecord
from mam.jobs.input_rules import is_job_id
from mam.jobs.record import parse_job
from mam.stores.port import JobWithEvents, Problem
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from mam.jobs.generation import Generations
    from mam.jobs.pause import Pause

SIZE_LIMIT = 64 * 1024 * 1024
STATUSES = {
    "queued": "pending",
    "running": "pending",  # no worker holds it, and its prompt is still there
    "failed_retryable": "pending",
    "succeeded": "completed",
    "failed_final": "error",
}
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def is_queue(path: str) -> bool:
    return any(
        os.path.isfile(os.path.join(path, name, "job.json")) and os.path.isfile(os.path.join(path, name, "state"))
        for name in os.listdir(path)
    )


class OldQueue:
    def __init__(self, path: str) -> None:
        self.address = os.path.realpath(path)
        self._problems: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def ids(self) -> Sequence[str]:
        found = [(fields["created_at"], job_id) for job_id in self._names() if (fields := self._fields(job_id))]
        self._numbers = {job_id: number for number, (_created, job_id) in enumerate(sorted(found), start=1)}
        return list(self._numbers)

    def read(self, job_id: str) -> JobWithEvents | None:
        fields = self._fields(job_id)
        if fields is None:
            return None
        try:
            job = parse_job(self._record(job_id, fields), self._file(job_id))
        except BadRecord as bad:
            self._problems[f"{job_id}/job.json"] = str(bad.facts["problem"])
            return None
        return JobWithEvents(job=job, events=[])

    def _record(self, job_id: str, old: dict[str, Any]) -> dict[str, Any]:
        status = STATUSES[old["state"]]
        ended = status in ("completed", "error")
        return {
            "job_id": job_id,
            "number": self._numbers.setdefault(job_id, len(self._numbers) + 1),
            "status": status,
            "prompt": self._prompt(old),
            "agent": "codex",
            "agent_session": f"{old['git_owner']}/{old['repo_name']}",
            "created_at": old["created_at"],
            "updated_at": old["updated_at"],
            "ended_at": old["updated_at"] if ended else None,
            "reason": old.get("failure_reason") if status == "error" else None,
            "retries": old["retries"],
            "queue": old,
        }

    def _prompt(self, old: dict[str, Any]) -> str:
        """The file may have been moved since; the job knows where it was."""
        places = [old.get("processed_path"), old.get("archived_path"), old["inbox_file"]]
        for place in places:
            if isinstance(place, str) and os.path.isabs(place):
                path = os.path.join(place, "prompt.md") if os.path.isdir(place) else place
                text = _text(path)
                if text:
                    return text
        return f"(the prompt was in {old['inbox_rel']}, which is not there any more)"

    def archive(self) -> Iterator[JobWithEvents]:
        return iter(())

    def secrets(self, job_id: str) -> dict[str, str]:
        del job_id
        return {}

    def pauses(self) -> list[Pause]:
        return []

    def generations(self) -> dict[str, Generations]:
        return {}

    def state(self) -> str:
        stamps = []
        for job_id in self._names():
            for name in ("job.json", "state"):
                try:
                    found = os.stat(os.path.join(self.address, job_id, name), follow_symlinks=False)
                except OSError:
                    continue
                stamps.append(f"{job_id}:{name}:{found.st_ino}:{found.st_mtime_ns}:{found.st_size}")
        return "\n".join(stamps)

    def changed_since(self, state: str) -> list[str]:
        now, before = {*self.state().splitlines()}, {*state.splitlines()}
        return sorted({line.partition(":")[0] for line in now ^ before})

    def problems(self) -> list[Problem]:
        return [Problem(file=file, problem=problem) for file, problem in sorted(self._problems.items())]

    def _names(self) -> list[str]:
        names = sorted(os.listdir(self.address))
        return [name for name in names if is_job_id(name) and os.path.isdir(self._folder(name))]

    def _folder(self, job_id: str) -> str:
        return os.path.join(self.address, job_id)

    def _file(self, job_id: str) -> str:
        return os.path.join(self._folder(job_id), "job.json")

    def _fields(self, job_id: str) -> dict[str, Any] | None:
        """The fields of `job.json`, with the state from the file `state`."""
        problem = None
        text, state = _text(self._file(job_id)), (_text(os.path.join(self._folder(job_id), "state")) or "").strip()
        try:
            fields = safe_json(text or "")
        except ValueError:
            fields, problem = None, "is not whole, valid JSON"
        if problem is None:
            problem = _wrong(job_id, fields, state)
        if problem is not None:
            self._problems[f"{job_id}/job.json"] = problem
            return None
        self._problems.pop(f"{job_id}/job.json", None)
        return {**fields, "state": state}


def _wrong(job_id: str, fields: Any, state: str) -> str | None:
    if not isinstance(fields, dict):
        return "is not a JSON object"
    needed = ("git_owner", "repo_name", "branch_name", "inbox_file", "inbox_rel", "created_at", "updated_at")
    missing = [name for name in needed if not isinstance(fields.get(name), str)]
    if missing:
        return f"lacks {', '.join(missing)}"
    if fields.get("job_id") != job_id:
        return "says that it is another job"
    if type(fields.get("retries")) is not int or fields["retries"] < 0:
        return "retries is not a count"
    return None if state in STATUSES else f"its state is {state[:40]!r}, which is none"


def _text(path: str) -> str | None:
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        data = file.read(SIZE_LIMIT + 1)
    return data.decode(errors="replace") if len(data) <= SIZE_LIMIT else None
