"""What the user has trusted: project files by path and content, stores by path and inode.

A changed project file must be trusted again. A store must be trusted again when its path leads to another directory.
"""

from __future__ import annotations

import os
import stat

from mam.util.state_dir import make_private, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Trusted = dict[str, dict[str, Any]]

NAME, LOCK = "trusted.json", "trusted.lock"
FILES, STORES = "files", "stores"
_NEEDED = {FILES: {"sha256"}, STORES: {"leads_to", "inode"}}


def trusted(kind: str = FILES) -> Trusted:
    """The trusted entries, by path. A list that another user could have written counts as empty."""
    from mam.stores.private_files import read_json_file

    path = os.path.join(state_directory(), NAME)
    try:
        for place in (path, os.path.dirname(path)):
            about = os.lstat(place)
            if about.st_uid != os.geteuid() or about.st_mode & 0o022 or stat.S_ISLNK(about.st_mode):
                return {}
        found = read_json_file(path)
    except OSError:
        return {}
    entries = found.get(kind) if isinstance(found, dict) else None
    if not isinstance(entries, dict):
        return {}
    return {name: entry for name, entry in entries.items() if isinstance(entry, dict) and _NEEDED[kind] <= entry.keys()}


def is_trusted(path: str, digest: str) -> bool:
    return trusted().get(path, {}).get("sha256") == digest


def is_trusted_store(path: str, leads_to: str, inode: int) -> bool:
    entry = trusted(STORES).get(path, {})
    return entry.get("leads_to") == leads_to and entry.get("inode") == inode


def trust(path: str, digest: str, when: str) -> None:
    _change(FILES, {path: {"sha256": digest, "trusted_at": when}}, ())


def trust_store(path: str, leads_to: str, inode: int, when: str) -> None:
    """Trusts the store under the given path and under its real path."""
    entry = {"leads_to": leads_to, "inode": inode, "trusted_at": when}
    _change(STORES, {path: entry, leads_to: entry}, ())


def revoke(path: str) -> bool:
    """Whether it had been trusted."""
    return _change(FILES, {}, (path,))


def revoke_store(path: str) -> bool:
    """Whether it had been trusted."""
    entry = trusted(STORES).get(path)
    return entry is not None and _change(STORES, {}, (path, entry["leads_to"]))


def _change(kind: str, added: Trusted, removed: tuple[str, ...]) -> bool:
    """Under a lock, so that two concurrent changes both take effect."""
    import fcntl

    from mam.stores.private_files import replace_json_file

    directory = make_private(state_directory())
    lock = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = {one: trusted(one) for one in (FILES, STORES)}
        entries = {path: entry for path, entry in {**before[kind], **added}.items() if path not in removed}
        after = {**before, kind: entries}
        if after != before:
            replace_json_file(os.path.join(directory, NAME), {"schema_version": 1, **after})
        return after != before
    finally:
        os.close(lock)
