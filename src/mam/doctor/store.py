"""Whether the store is there, opens, and is of this version's form."""

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
        yield wrong(str(context.not_located), "no verb finds its jobs", "mam where")
        return
    if isinstance(context.not_opened, StoreUntrusted):
        yield wrong(str(context.not_opened), "no verb uses it")
        return
    init = f"mam init --store {located.shown}"
    if located.kind == FILES and os.path.isdir(located.path) and not context.is_store:
        empty = not os.listdir(located.path)
        what = "is an empty directory" if empty else "has files, and nothing of mam's among them"
        why = (
            "nothing has been registered here"
            if empty
            else "it is left alone; a job registered here would be beside them"
        )
        yield note(f"{located.shown} {what}", why, init if empty else "mam where")
        return
    if located.exists is False:
        yield note(f"there is no store at {located.shown}", "nothing has been registered here", init)
        return
    try:
        store = context.store
        store.end_offset()
    except StoreMissing as error:
        yield note(str(error), "nothing has been registered here", init)
        return
    except StoreUnavailable as error:
        yield wrong(str(error), "no verb can use it", _mend(str(error), located.shown, str(error.facts["store"])))
        return
    except MamError as error:
        yield wrong(str(error), "no verb can use it")
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
"""A larger database takes longer to check than a person waits."""


def _integrity(path: str, mend: str) -> Iterator[Finding]:
    import apsw

    size = os.path.getsize(path)
    if size > CHECKED_BYTES:
        why = "checking all of it takes minutes"
        yield note(
            f"{path} has {size / 1e9:.1f} GB and was not read through", why, f"sqlite3 {path} 'PRAGMA quick_check'"
        )
        return
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        database.set_busy_timeout(10_000)
        said = [str(row[0]) for row in database.execute("PRAGMA quick_check(3)")]
        strays = database.execute("PRAGMA foreign_key_check").fetchall()
    except apsw.Error as error:
        said, strays = [str(error)], []
    finally:
        database.close()
    if said != ["ok"]:
        yield wrong(
            f"{path} is damaged: {said[0]}",
            "jobs may be lost or answered wrongly",
            mend,
        )
    if strays:
        yield wrong(f"{path}: {count(len(strays), 'row')} of no job", "something else has written into it", mend)
