"""Which project files the user has trusted: path and content, so that a file that changes must be trusted again."""

from __future__ import annotations

import os
import stat

from mam.state import make_private, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    Trusted = dict[str, dict[str, str]]

NAME, LOCK = "trusted.json", "trusted.lock"


def trusted() -> Trusted:
    """By path: the hash that was trusted, and when. A list that somebody else could have written counts as empty."""
    from mam.stores.beside import read_whole

    path = os.path.join(state_directory(), NAME)
    try:
        for place in (path, os.path.dirname(path)):
            about = os.lstat(place)
            if about.st_uid != os.geteuid() or about.st_mode & 0o022 or stat.S_ISLNK(about.st_mode):
                return {}
        found = read_whole(path)
    except OSError:
        return {}
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict):
        return {}
    return {name: entry for name, entry in files.items() if isinstance(entry, dict) and "sha256" in entry}


def is_trusted(path: str, digest: str) -> bool:
    return trusted().get(path, {}).get("sha256") == digest


def trust(path: str, digest: str, when: str) -> None:
    _change({path: {"sha256": digest, "trusted_at": when}}, ())


def revoke(path: str) -> bool:
    """Whether it had been trusted."""
    return _change({}, (path,))


def _change(added: Trusted, removed: tuple[str, ...]) -> bool:
    """Under a lock, so that two who trust two files at once are both remembered."""
    import fcntl

    from mam.stores.beside import replace_whole

    directory = make_private(state_directory())
    lock = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = trusted()
        after = {path: entry for path, entry in {**before, **added}.items() if path not in removed}
        if after != before:
            replace_whole(os.path.join(directory, NAME), {"schema_version": 1, "files": after})
        return after != before
    finally:
        os.close(lock)
