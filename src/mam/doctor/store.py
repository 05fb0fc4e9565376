"""Check that the store exists, opens, has the current schema and is intact."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, note, wrong
from mam.errors import MamError, StoreMissing, StoreUnavailable, StoreUntrusted
from mam.location.stores import FILES, SQLITE_KIND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    located = context.located
    if located is None:
        yield wrong(str(context.not_located), "no verb can find the jobs", "mam where")
        return
    if isinstance(context.not_opened, StoreUntrusted):
        yield wrong(str(context.not_opened), "no verb uses this store")
        return
    init = f"mam init --store {located.shown}"
    if located.kind == FILES and os.path.isdir(located.path) and not context.is_store:
        empty = not os.listdir(located.path)
        what = "is an empty directory" if empty else "contains files, but no store"
        why = (
            "no job has been registered here"
            if empty
            else "mam leaves the files; a job registered here would be stored beside them"
        )
        yield note(f"{located.shown} {what}", why, init if empty else "mam where")
        return
    if located.exists is False:
        yield note(f"there is no store at {located.shown}", "no job has been registered here", init)
        return
    try:
        store = context.store
        store.end_offset()
    except StoreMissing as error:
        yield note(str(error), "no job has been registered here", init)
        return
    except StoreUnavailable as error:
        yield wrong(
            str(error), "no verb can use this store", _mend(str(error), located.shown, str(error.facts["store"]))
        )
        return
    except MamError as error:
        yield wrong(str(error), "no verb can use this store")
        return
    if located.kind in (SQLITE_KIND, FILES):
        is_files = located.kind == FILES
        path = os.path.join(located.path, ".store", "registry.db") if is_files else located.path
        mend = f"mam rebuild --store {located.shown}" if is_files else f"restore a backup, or: sqlite3 {path} .recover"
        yield from _integrity(path, mend)
    yield fine(f"{store.address} opens{'' if located.kind == FILES else ', its schema is current'}")


def _mend(problem: str, address: str, place: str) -> str | None:
    if "`mam rebuild`" in problem or "is damaged" in problem:
        return f"mam rebuild --store {address}"
    if "`mam init" in problem:
        return f"mam init --store {address}"
    if "can be written by" in problem:
        return f"chmod go-w {place}"
    return None


CHECKED_BYTES = 512 * 1024 * 1024
"""mam does not check a larger database, because this takes minutes."""


def _integrity(path: str, mend: str) -> Iterator[Finding]:
    import apsw

    size = os.path.getsize(path)
    if size > CHECKED_BYTES:
        why = "checking all of it takes minutes"
        yield note(f"{path} has {size / 1e9:.1f} GB and was not checked", why, f"sqlite3 {path} 'PRAGMA quick_check'")
        return
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        database.set_busy_timeout(10_000)
        rows = [str(row[0]) for row in database.execute("PRAGMA quick_check(3)")]
        orphans = database.execute("PRAGMA foreign_key_check").fetchall()
    except apsw.Error as error:
        rows, orphans = [str(error)], []
    finally:
        database.close()
    if rows != ["ok"]:
        yield wrong(
            f"{path} is damaged: {rows[0]}",
            "jobs may be lost or wrong",
            mend,
        )
    if orphans:
        yield wrong(
            f"{path}: {count(len(orphans), 'row')} without a job", "another program has written into the database", mend
        )
