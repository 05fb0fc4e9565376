"""`mam watch` in a pipe: one line for each status change."""

from __future__ import annotations

import select
import sys

from mam.cli.render.streams import print_json_line, print_row, say
from mam.cli.watch.journal_follower import FollowerFailed, JournalFollower, Loaded, NewEntries, Unavailable
from mam.errors import MamError
from mam.jobs.status import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.watch.journal_follower import Notification
    from mam.jobs.change import AuditRecord
    from mam.registry import Registry
    from mam.stores.port import Entry, Query

NEW, GONE = "new", "gone"


def follow(all_lines: list[ChangePrinter]) -> int:
    """Print the changes of all these stores until interrupted."""
    followers = [(lines, JournalFollower(lines.registry, lambda: None)) for lines in all_lines]
    poll = select.poll()
    for _, follower in followers:
        poll.register(follower.wake_fd, select.POLLIN)
    poll.register(sys.stdout.fileno(), 0)  # detects a reader that closes the pipe while nothing changes
    while True:
        ready = dict(poll.poll())
        if ready.get(sys.stdout.fileno(), 0) & (select.POLLERR | select.POLLHUP):
            raise BrokenPipeError
        for lines, follower in followers:
            for notification in follower.drain():
                lines.handle(notification)
        sys.stdout.flush()


class ChangePrinter:
    def __init__(self, registry: Registry, query: Query, *, as_json: bool, named: bool = False) -> None:
        """`named`: each line starts with the store."""
        self.registry = registry
        self._store = registry.store.address if named else None
        self._registry = registry
        self._query = query
        self._as_json = as_json
        self._labels: dict[str, tuple[str, str]] = {}
        """Label and registration time of open jobs."""
        self._last_problem = ""

    def handle(self, notification: Notification) -> None:
        match notification:
            case Loaded():
                say(f"watching {self._registry.store.address}")
            case NewEntries():
                for entry in notification.entries:
                    self._print_entry(entry)
            case Unavailable():
                self._report_problem(notification.why)
            case FollowerFailed():
                raise notification.error

    def _print_entry(self, entry: Entry) -> None:
        changes = [line for line in entry.lines if line.get("event") in ("registered", "status_changed")]
        if not changes and entry.fields is not None:
            return
        label, created = self._label_and_time(entry)
        if self._query.label not in (None, label) or (self._query.since is not None and created < self._query.since):
            return
        for line in changes:
            self._print_change(line, line.get("from"), line.get("to") or line.get("status"), label)
        if entry.fields is None:
            gone = {"timestamp": self._registry.store.clock.now().second, "job_id": entry.job_id}
            self._print_change(gone, None, None, label)
        if entry.fields is None or (changes and _ended(changes[-1])):
            self._labels.pop(entry.job_id, None)

    def _print_change(self, line: AuditRecord, before: str | None, after: str | None, label: str) -> None:
        if self._query.statuses is not None and after not in self._query.statuses:
            return
        if self._as_json:
            kept = {name: value for name, value in line.items() if name not in ("event", "status")}
            place = {} if self._store is None else {"store": self._store}
            print_json_line({**place, **kept, "from": before, "to": after, "agent_session": label})
            return
        move = f"{before or (NEW if after else '?')} -> {after or GONE}"
        named = () if self._store is None else (self._store,)
        print_row(*named, line["timestamp"], line["job_id"], move, label, _reason(line))

    def _label_and_time(self, entry: Entry) -> tuple[str, str]:
        fields = entry.fields or {}
        if "agent_session" in fields and "created_at" in fields:
            self._labels[entry.job_id] = (fields["agent_session"], fields["created_at"])
        if entry.job_id not in self._labels:
            try:
                job = self._registry.store.get(entry.job_id)
                self._labels[entry.job_id] = (job.agent_session, job.created_at)
            except MamError:
                return "", ""
        return self._labels[entry.job_id]

    def _report_problem(self, why: str) -> None:
        """Print each new problem once."""
        if why != self._last_problem:
            self._last_problem = why
            say(why)


def _ended(line: AuditRecord) -> bool:
    return (line.get("to") or line.get("status")) in ENDED


def _reason(line: AuditRecord) -> str:
    if line.get("reason"):
        return str(line["reason"])
    if line.get("losses"):
        return f"the lease expired (loss {line['losses']})"
    if line.get("owner"):
        return f"attempt {line.get('attempt')}, held by {line['owner']}"
    return ""
