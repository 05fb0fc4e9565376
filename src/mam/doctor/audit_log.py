"""Whether the audit log has everything that the journal has."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from mam.audit.failures import FILE, read_failures
from mam.audit.fetch import fetch
from mam.audit.sync import AuditLog
from mam.doctor.finding import count, fine, note, wrong
from mam.errors import MamError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding
    from mam.stores.port import Store

PATIENCE_SECONDS = 0.5
ALL = 1 << 40


def check(context: Context) -> Iterator[Finding]:
    store = context.try_open()
    if store is None or context.located is None:
        return
    logs_dir = context.located.logs_dir

    def catch_up() -> None:
        AuditLog(logs_dir).catch_up(store)
        left = _behind(logs_dir, store)
        if left:
            raise Refused(why=left)
        forget_failures()

    def forget_failures() -> None:
        if store.home is not None:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(store.home, FILE))

    if again := _again(logs_dir, store):
        yield note(
            f"the machine was restarted: the last {again:,} of the journal's entries will be looked up in"
            " the audit log once more",
            "a power cut may have taken lines from it; the next act does it, and so does --fix",
            fix=catch_up,
        )
        return
    behind = _behind(logs_dir, store)
    if behind:
        time.sleep(PATIENCE_SECONDS)  # somebody may just have written, and be about to copy it
        behind = _behind(logs_dir, store)
    failures = read_failures(store.home) if store.home is not None else None
    failed = f"failed {count(failures['count'], 'time')}, last" if failures else ""
    last = f"; it {failed}: {failures['last']}" if failures else ""
    if behind:
        yield wrong(
            f"the audit log {logs_dir} is behind: {behind}{last}",
            "it is the history that outlives the store",
            fix=catch_up,
        )
    elif failures:
        yield note(
            f"writing the audit log has {failed} at {failures.get('at')}: {failures['last']}",
            "it has caught up since",
            fix=forget_failures,
        )
    elif missing := _without_history(logs_dir, store):
        yield wrong(
            f"the audit log {logs_dir} lacks the history of {count(len(missing), 'job')}, such as {missing[0]}",
            "it is the history that outlives the store; what no journal tells, such as refused writes, is gone",
            fix=lambda: AuditLog(logs_dir).begin_again(store),
        )
    else:
        yield fine(f"{logs_dir} has every entry")


def _without_history(logs_dir: str, store: Store) -> list[str]:
    """Jobs whose directory somebody has removed. The copy knows only how far it has come. An archive that came from
    another registry left its histories there."""
    try:
        there = set(os.listdir(logs_dir))
    except FileNotFoundError:
        there = set()
    return [job_id for job_id in store.ids_with_prefix("", ALL) if job_id not in there]


def _again(logs_dir: str, store: Store) -> int:
    """How many entries are only gone over again, having been copied before the machine went down; 0 if others lack."""
    try:
        batch = fetch(logs_dir, store)
    except OSError:
        return 0
    done = batch.before_restart
    if done is None or batch.replaced or batch.mended or not batch.reaches_end:
        return 0
    return len(batch.entries) if all(entry.number <= done for entry in batch.entries) else 0


def _behind(logs_dir: str, store: Store) -> str:
    """What it lacks, in words; nothing when it lacks nothing."""
    try:
        batch = fetch(logs_dir, store)
    except MamError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    if not batch.needs_writing:
        return ""
    if batch.replaced:
        return "the journal is another one than the one it was copied from"
    lacking = len(batch.entries)
    if lacking == 1 and batch.reaches_end:
        return "it lacks 1 entry of the journal"
    return f"it lacks {lacking}{'' if batch.reaches_end else ' or more'} entries of the journal"
