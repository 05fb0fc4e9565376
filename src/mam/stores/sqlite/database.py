"""Opens, checks and creates the database file of an SQLite store."""

from __future__ import annotations

import os
import stat
import sys
import time

import apsw

from mam import __version__
from mam.errors import StoreMissing, StoreOutdated, StoreUnavailable
from mam.location.ownership import is_approved_path
from mam.stores.private_files import make_directories
from mam.stores.sqlite.file_system import network_file_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

APPLICATION = 0x6D616D31
"""`mam1` marks the file as mam's, so that mam never touches the database of another program."""

VERSION = 15
"""The version of the schema. `step_N.sql` brings a database of version N - 1 to version N. Version 12 (mam 0.1.0) is
upgraded to the current one at once (upgrade.py); older ones are refused."""

UPGRADABLE = 12

_MARKS = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"

_LEAST_ROOM = 65536
"""The shared memory file takes half of it."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01


def open_database(path: str, wait_seconds: float, *, shared: bool = True, under_lock: bool = False) -> apsw.Connection:
    """Opens an existing database with the current schema. One that is not `shared` by several connections (a files
    store on a network file system) has a rollback journal, and may be on any file system. `under_lock`: writers hold a
    lock of their own, and checkpoints happen only under it, so closing makes none."""
    if shared:
        _check_file_system(path)
    _check_file(path, owner=not under_lock)  # the directory of a files store has been checked
    try:
        database = _connect(path, wait_seconds)
        if under_lock:
            database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _check_contents(database, path)
        _configure(database, wait_seconds, shared=shared)
    except apsw.Error as error:
        raise unavailable(path, error, wait_seconds) from None
    return database


def open_to_read(path: str, wait_seconds: float) -> apsw.Connection:
    """Opens a database where nothing can be written. SQLite cannot create the index (`-shm`) of a log there; without a
    log, the database alone is complete."""
    from urllib.parse import quote

    _check_file(path, owner=False)
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
    immutable = "?immutable=1" if not has_log else ""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        database = apsw.Connection(f"file:{quote(path)}{immutable}", flags=flags)
        database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        database.set_busy_handler(_busy_handler(wait_seconds))
        _check_contents(database, path)
    except apsw.CantOpenError:
        why = "cannot be read: its log has no index, and mam cannot write one beside it; copy the store, read the copy"
        raise StoreUnavailable(store=sqlite_address(path), problem=why) from None
    except apsw.Error as error:
        raise unavailable(path, error, wait_seconds) from None
    return database


def create_database(path: str, journal_id: str, wait_seconds: float, *, shared: bool = True) -> bool:
    """Creates the database or upgrades an older one. Returns whether it did either."""
    made = not os.path.exists(path)
    if shared:
        _check_file_system(path)
    try:
        make_directories(os.path.dirname(path))
        if made:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise StoreUnavailable(store=sqlite_address(path), problem=f"cannot be made: {error.strerror}") from None
    _check_file(path)
    try:
        database = _connect(path, wait_seconds)
        try:
            if not _is_empty(database):
                _check_ours(database, path)
            _configure(database, wait_seconds, shared=shared)
            return _create_or_upgrade(database, path, journal_id)
        finally:
            database.close()
    except apsw.Error as error:
        raise unavailable(path, error, wait_seconds) from None


def schema_text() -> str:
    """All of it, as `mam init --sql` prints it."""
    first = "INSERT INTO store (one, epoch) VALUES (1, lower(hex(randomblob(16))));\n"
    return f"{_file('schema.sql')}\n{first}{_MARKS}\n"


def unavailable(path: str, error: apsw.Error, wait_seconds: float) -> StoreUnavailable:
    """Translates an error of SQLite for users."""
    if isinstance(error, (apsw.IOError, apsw.CantOpenError)) and _is_full(path):
        error = apsw.FullError()
    problems = {
        apsw.BusyError: f"others have kept it locked for {wait_seconds:g} s; try again later",
        apsw.NotADBError: "is not an SQLite database",
        apsw.CorruptError: "is damaged; restore it from a backup, or try `sqlite3 FILE .recover`",
        apsw.FullError: "the disk is full",
        apsw.ReadOnlyError: "cannot be written: it is read-only",
        apsw.CantOpenError: "cannot be opened",
        apsw.IOError: "the disk reports an error",
    }
    for kind, problem in problems.items():
        if isinstance(error, kind):
            return StoreUnavailable(store=sqlite_address(path), problem=problem)
    return StoreUnavailable(store=sqlite_address(path), problem=str(error))


def _is_full(path: str) -> bool:
    """SQLite reports a full disk only for the database and its log, not for the shared memory file."""
    try:
        found = os.statvfs(os.path.dirname(path))
    except OSError:
        return False
    if found.f_flag & os.ST_RDONLY:
        return False  # a read-only disk has no free blocks either, and is not full
    blocks = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    return blocks * found.f_frsize < _LEAST_ROOM or (found.f_favail == 0 and found.f_files > 0)


def sqlite_address(path: str) -> str:
    return f"sqlite://{path}"


def _connect(path: str, wait_seconds: float) -> apsw.Connection:
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    database.set_busy_handler(_busy_handler(wait_seconds))
    # One plan for each query: with statistics SQLite would plan again for each value, which takes longer than the
    # query itself and may choose a bad plan.
    database.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return database


def _configure(database: apsw.Connection, wait_seconds: float, *, shared: bool = True) -> None:
    """Only for a database of mam: that of another program must not change, not even to WAL."""
    # FULL: with NORMAL a power cut could lose acknowledged jobs. fetchall, since a statement that returns rows stops
    # at the first one.
    _set_journal_mode(database, "WAL" if shared else "DELETE", wait_seconds)
    settings = ["synchronous = FULL", "foreign_keys = ON", "cache_size = -65536"]
    if not shared:
        settings.append("locking_mode = EXCLUSIVE")
    if sys.platform == "darwin":
        settings += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    for setting in settings:
        database.execute(f"PRAGMA {setting}").fetchall()


def _set_journal_mode(database: apsw.Connection, mode: str, wait_seconds: float) -> None:
    """SQLite calls no busy handler while it changes the journal mode: of several processes that open a new database at
    once, all but the first would fail."""
    pause, tries = _busy_handler(wait_seconds), 0
    while True:
        try:
            database.execute(f"PRAGMA journal_mode = {mode}").fetchall()
        except apsw.BusyError:
            if not pause(tries):
                raise
            tries += 1
        else:
            return


def _is_empty(database: apsw.Connection) -> bool:
    return _identity(database)[0] == 0 and not database.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()


def _busy_handler(wait_seconds: float) -> Any:
    """Short pauses that grow a little: those of SQLite grow to a tenth of a second, too long with many writers."""
    ends = [0.0]

    def pause(tries: int) -> bool:
        now = time.monotonic()
        if tries == 0:
            ends[0] = now + wait_seconds
        time.sleep(min(_FIRST_PAUSE * 2 ** min(tries, 10), _LONGEST_PAUSE))
        return now < ends[0]

    return pause


def _check_file_system(path: str) -> None:
    kind = network_file_system(path)
    if kind is not None:
        why = f"is on a network file system ({kind}), where SQLite's locks do not hold; use a local disk, or PostgreSQL"
        raise StoreUnavailable(store=sqlite_address(path), problem=why)


def _check_file(path: str, *, owner: bool = True) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise StoreMissing(store=sqlite_address(path)) from None
    except OSError as error:  # the disk is at fault: a new store would not help
        raise StoreUnavailable(store=sqlite_address(path), problem=error.strerror) from None
    if stat.S_ISDIR(found.st_mode):
        raise StoreUnavailable(store=sqlite_address(path), problem="is a directory; name a file, such as jobs.db in it")
    if owner and found.st_uid != os.geteuid() and not is_approved_path(path):
        raise StoreUnavailable(store=sqlite_address(path), problem=f"belongs to another user (uid {found.st_uid})")


def _check_contents(database: apsw.Connection, path: str) -> None:
    if _is_empty(database):
        raise StoreMissing(store=sqlite_address(path))
    version = _check_ours(database, path)
    if version < VERSION:
        raise StoreOutdated(store=sqlite_address(path), version=version, current=VERSION)


def _check_ours(database: apsw.Connection, path: str) -> int:
    application, version = _identity(database)
    if application != APPLICATION:
        raise StoreUnavailable(store=sqlite_address(path), problem="is a database of another program")
    if version < UPGRADABLE:
        why = f"has schema {version} of a mam before 0.1.0; mam 0.1.0 brings it up to date, then this one does"
        raise StoreUnavailable(store=sqlite_address(path), problem=why)
    if version > VERSION:
        why = f"has schema {version}, which only a newer mam knows; this is mam {__version__}: install a newer one"
        raise StoreUnavailable(store=sqlite_address(path), problem=why)
    return version


def _identity(database: apsw.Connection) -> tuple[int, int]:
    found: Any = database.execute("SELECT application_id, user_version FROM pragma_application_id, pragma_user_version")
    application, version = found.fetchall()[0]
    return int(application), int(version)


def _create_or_upgrade(database: apsw.Connection, path: str, epoch: str) -> bool:
    database.execute("BEGIN IMMEDIATE")
    try:
        version = 0 if _is_empty(database) else _check_ours(database, path)
        if version == VERSION:
            database.execute("ROLLBACK")
            return False
        if version == 0:
            database.execute(_file("schema.sql"))
            database.execute("INSERT INTO store (one, epoch) VALUES (1, ?)", (epoch,))
        elif version == UPGRADABLE:
            from mam.stores.sqlite.upgrade import upgrade

            upgrade(database, _file("schema.sql"), path)
        else:
            for step in range(version + 1, VERSION + 1):
                database.execute(_file(f"step_{step}.sql"))
        database.execute(f"{_MARKS} COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    return True


def _file(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
