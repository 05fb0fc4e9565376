"""Files stores of mam 0.1.0: what a new database takes over from them, and how an older mam is locked out."""

from __future__ import annotations

import os
from zlib import crc32

import apsw

from mam.jobs.record import parse_job
from mam.stores.common import chunks
from mam.stores.files.mirror import ASIDE
from mam.stores.port import JobWithEvents
from mam.stores.private_files import make_directories, read_json_file, replace_bytes, sync_directory
from mam.util.encoding import to_bytes
from mam.util.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.files.store import FilesStore

OLD_JOURNAL = "journal.log"
_NEWER_FORMAT = 2
"""Mam 0.1.0 writes format 1 and refuses a journal of a higher one."""

_OLD_FILES = (
    "index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "archive.sqlite", "pauses", "generations", "journal.end",
)  # fmt: skip


def is_of_0_1_0(home: str) -> bool:
    return os.path.exists(os.path.join(home, OLD_JOURNAL))


def import_rest(store: FilesStore) -> None:
    """Imports archived jobs, pauses and generations of sessions. Secrets stay in their file."""
    from mam.jobs.pause import parse_pause

    for chunk in chunks(list(_read_archive(os.path.join(store.home, "archive.sqlite")))):
        store.import_jobs(chunk, archived=True)
    for fields in read_json_file(os.path.join(store.home, "pauses")) or []:
        store.pause(parse_pause(fields))
    generations = read_json_file(os.path.join(store.home, "generations")) or {}
    for agent_id, known in generations.items():
        superseded = to_bytes(known["superseded"]).decode()
        store._in_transaction(store._save_generation, agent_id, known["current"], superseded)


def _read_archive(path: str) -> Iterator[JobWithEvents]:
    if not os.path.exists(path):
        return
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'archive'").fetchall():
            return
        for record, events in database.execute("SELECT record, events FROM archive ORDER BY number"):
            job = parse_job(strict_json(str(record).encode()), path)
            yield JobWithEvents(job=job, events=strict_json(str(events).encode()))
    finally:
        database.close()


def is_old_mam_locked_out(home: str) -> bool:
    try:
        with open(os.path.join(home, OLD_JOURNAL), "rb") as file:
            return file.read(len(_newer_line())) == _newer_line()
    except FileNotFoundError:
        return False


def lock_out_old_mam(home: str) -> None:
    """Mam 0.1.0, running or started later, finds a journal that only a newer mam can read, and refuses the store."""
    old = os.path.join(home, OLD_JOURNAL)
    if is_old_mam_locked_out(home):
        return
    if os.path.exists(old):
        aside = _aside(home)
        os.link(old, os.path.join(aside, f"{OLD_JOURNAL}.{os.urandom(4).hex()}"))
        sync_directory(aside)
    replace_bytes(old, _newer_line())


def _newer_line() -> bytes:
    body = to_bytes({"journal": "newer", "first": 1, "format": _NEWER_FORMAT})
    return b"%08x %s\n" % (crc32(body), body)


def move_old_files(home: str) -> None:
    """Moves the other files of mam 0.1.0 aside, unread."""
    names = [name for name in os.listdir(home) if name in _OLD_FILES or _is_segment(name)]
    aside = _aside(home) if names else home
    for name in names:
        os.rename(os.path.join(home, name), os.path.join(aside, name))


def _is_segment(name: str) -> bool:
    return name.startswith("journal-") and name.endswith(".log")


def _aside(home: str) -> str:
    aside = os.path.join(home, ASIDE, "0.1.0")
    make_directories(aside)
    return aside
