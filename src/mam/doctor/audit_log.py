"""Check whether the audit log contains every entry of the journal."""

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
            f"after a restart of the machine, mam will check the last {again:,} journal entries in the audit log",
            "a power cut may have removed lines; the next write does this, and so does --fix",
            fix=catch_up,
        )
        return
    behind = _behind(logs_dir, store)
    if behind:
        time.sleep(PATIENCE_SECONDS)  # another process may be about to copy its entry
        behind = _behind(logs_dir, store)
    failures = read_failures(store.home) if store.home is not None else None
    failed = f"failed {count(failures['count'], 'time')}, last" if failures else ""
    last = f"; it {failed}: {failures['last']}" if failures else ""
    if behind:
        yield wrong(
            f"the audit log {logs_dir} is behind: {behind}{last}",
            "the audit log is the history that outlives the store",
            fix=catch_up,
        )
    elif failures:
        yield note(
            f"writing the audit log has {failed} at {failures.get('at')}: {failures['last']}",
            "it is up to date now",
            fix=forget_failures,
        )
    elif missing := _without_history(logs_dir, store):
        yield wrong(
            f"the audit log {logs_dir} lacks the history of {count(len(missing), 'job')}, such as {missing[0]}",
            "--fix restores it from the journal, except lines that the journal lacks, such as rejected writes",
            fix=lambda: AuditLog(logs_dir).begin_again(store),
        )
    else:
        yield fine(f"{logs_dir} has every entry")


def _without_history(logs_dir: str, store: Store) -> list[str]:
    """Jobs without a directory in the log. The position of the copy does not show that a directory was removed."""
    try:
        there = set(os.listdir(logs_dir))
    except FileNotFoundError:
        there = set()
    return [job_id for job_id in store.ids_with_prefix("", ALL) if job_id not in there]


def _again(logs_dir: str, store: Store) -> int:
    """The number of entries that were copied before a restart and need another check; 0 if others are missing."""
    try:
        batch = fetch(logs_dir, store)
    except OSError:
        return 0
    done = batch.before_restart
    if done is None or batch.replaced or batch.mended or not batch.reaches_end:
        return 0
    return len(batch.entries) if all(entry.number <= done for entry in batch.entries) else 0


def _behind(logs_dir: str, store: Store) -> str:
    """What the audit log lacks; empty if it is complete."""
    try:
        batch = fetch(logs_dir, store)
    except MamError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    if not batch.needs_writing:
        return ""
    if batch.replaced:
        return "it is a copy of another journal"
    lacking = len(batch.entries)
    if lacking == 1 and batch.reaches_end:
        return "it lacks 1 entry of the journal"
    return f"it lacks {lacking}{'' if batch.reaches_end else ' or more'} entries of the journal"
