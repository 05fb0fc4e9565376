"""Stages the changes of an agent's work tree without entering nested repositories.

`git add` runs git in each nested repository of the index, with that repository's settings, which the agent may have
written. `ls-files` and `update-index` enter none.
"""

from __future__ import annotations

import os
import stat

from mam.util.frozen import Frozen
from mam.work.git.command import LONG_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.work.git.command import Git

INDEX_LIMIT = 1 << 28
_CHANGES = ("--others", "--modified", "--deleted", "--exclude-standard")


class Staged(Frozen):
    nested: list[str]
    """Nested repositories, which are not staged."""
    too_large: int = 0
    """How many files were left as they are in the index."""


def stage(git: Git, top: str, largest: int | None = None) -> Staged:
    """Stages every change except those in nested repositories and in files above `largest` bytes."""
    listed = git.text("ls-files", "-z", *_CHANGES, limit=INDEX_LIMIT, seconds=LONG_SECONDS).split("\0")[:-1]
    folders = {name for name in listed if not name.endswith("/") and os.path.isdir(os.path.join(top, name))}
    links = folders.intersection(gitlinks(git)) if folders else folders
    nested = dict.fromkeys(name for name in listed if name.endswith("/") or name in links)
    names = dict.fromkeys(name for name in listed if name not in nested)
    linked = _behind_links(top, {os.path.dirname(name) for name in names})
    files = [name for name in names if os.path.dirname(name) not in linked and _is_file(os.path.join(top, name))]
    _update(git, [*(names.keys() - set(files))], "--force-remove")
    small = files if largest is None else [name for name in files if _size(os.path.join(top, name)) <= largest]
    _update(git, small, "--add", "--replace")
    return Staged(nested=list(nested), too_large=len(files) - len(small))


def gitlinks(git: Git) -> list[str]:
    """The nested repositories in the index, checked out or not."""
    entries = git.text("ls-files", "-z", "--stage", limit=INDEX_LIMIT).split("\0")
    return [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]


def _behind_links(top: str, folders: set[str]) -> set[str]:
    """Directories that were replaced by a link; the index's files in them are gone."""
    real = os.path.realpath(top)
    return {folder for folder in folders if folder and os.path.realpath(f"{real}/{folder}") != f"{real}/{folder}"}


def _is_file(path: str) -> bool:
    """Whether it is a file or a link. Raises OSError if the system does not tell: an unreadable file is not deleted."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def _update(git: Git, names: list[str], *words: str) -> None:
    if not names:
        return
    given = "".join(f"{name}\0" for name in names)
    git.text("update-index", *words, "-z", "--stdin", given=given, seconds=LONG_SECONDS)
