"""The project's settings, `.mam/config.toml`: the nearest file upward from the working directory.

Anyone who can write to the repository can write this file. Until the user runs `mam trust` for exactly this content,
only its harmless settings count; mam ignores the others with a warning.
"""

from __future__ import annotations

import errno
import os
import sys

from mam.errors import BadConfig
from mam.util.frozen import Frozen
from mam.util.safe_read import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.config.settings import Values

NAME = ".mam/config.toml"
SIZE_LIMIT = 1 << 20

_NOT_A_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL)

_warned: set[str] = set()


class ProjectFile(Frozen):
    """The file, read once: mam uses exactly the bytes whose trust it checked."""

    path: str
    content: bytes

    @property
    def digest(self) -> str:
        import hashlib

        return hashlib.sha256(self.content).hexdigest()

    @property
    def values(self) -> Values:
        from mam.config.file import read_values

        return read_values("project.json", [self.digest], self.path, lambda: self.content)


def project_values() -> Values:
    """The settings of the project's file that count."""
    found = find_project_file()
    if found is None:
        return {}
    from mam.config.settings import SETTINGS
    from mam.config.trust import is_trusted

    values = found.values
    harmless = {setting.name for setting in SETTINGS if setting.harmless}
    ignored = [] if is_trusted(found.path, found.digest) else [name for name in values if name not in harmless]
    if ignored:
        names, do = ", ".join(ignored), "does" if len(ignored) == 1 else "do"
        _warn_once(f"{found.path} is not trusted, so its {names} {do} not count; `mam trust` changes that")
    counted = {name: value for name, value in values.items() if name not in ignored}
    return {**counted, "rules": without_allow(counted["rules"], found.path)} if "rules" in counted else counted


def without_allow(rules: list[Values], path: str) -> list[Values]:
    """Only the user's own file may allow something, whatever the user has trusted."""
    from mam.jobs.question import ALLOW

    kept = [rule for rule in rules if rule["do"] != ALLOW]
    if len(kept) != len(rules):
        _warn_once(f"{path} has rules that allow something; only those in your own file count")
    return kept


def find_project_file() -> ProjectFile | None:
    from mam.location.stores import is_own_directory, levels_from

    try:
        here = os.getcwd()
    except FileNotFoundError:
        return None
    for level, _ in levels_from(here):
        home = os.path.join(level, ".mam")
        if is_own_directory(home) and _is_private(home):
            found = read_project_file(os.path.join(level, NAME))
            if found is not None:
                return found
    return None


def _is_private(directory: str) -> bool:
    from mam.location.ownership import other_writers

    who = other_writers(os.stat(directory).st_mode)
    if who is not None and os.path.lexists(os.path.join(directory, "config.toml")):
        _warn_once(f"{directory} can be written by {who}, so its config.toml does not count; `chmod go-w {directory}`")
    return who is None


def read_project_file(path: str) -> ProjectFile | None:
    """None when it is missing, is not a regular file or belongs to another user."""
    try:
        about, content = read_regular(path, SIZE_LIMIT, os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in _NOT_A_FILE:
            return None
        raise BadConfig(file=path, problem=error.strerror) from None
    if about.st_uid != os.geteuid():
        return None
    if len(content) > SIZE_LIMIT:
        raise BadConfig(file=path, problem=f"has more than {SIZE_LIMIT:,} bytes")
    return ProjectFile(path=canonical(path), content=content)


def canonical(path: str) -> str:
    """The path under which a file is trusted: its directory without symbolic links."""
    path = os.path.abspath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _warn_once(message: str) -> None:
    """Once in a process. A path may contain control characters, which are escaped."""
    if message not in _warned and sys.stderr is not None:
        _warned.add(message)
        sys.stderr.write(f"mam: {message if message.isprintable() else ascii(message)}\n")
