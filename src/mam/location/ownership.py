"""Checks that a store belongs to the user. One that came with a repository is refused until the user approves it.

A store came with a repository when git tracks files of it, when a link that git tracks leads to it, or when another
user owns it. The result is stored in the user's state directory with the stamps of the git indexes above the store:
while these stay the same, a check needs only a few system calls. A store that mam created is stored at once.
"""

from __future__ import annotations

import os
import stat

from mam.errors import StoreUnavailable, StoreUntrusted
from mam.location import HOMES
from mam.location.git_tracking import GitUnavailable, Repository, repositories_of, tracked_files
from mam.util.frozen import Frozen
from mam.util.state_dir import as_file_name, make_private, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

OWNED = "owned"
_MAX_LINKS = 40
_DATABASE_SUFFIXES = ("-wal", "-journal", "-shm", "-secrets")
"""Files beside a database: SQLite reads its logs, and mam the secrets."""


class PathFacts(Frozen):
    """What the file system and git know about the path of a store, at one moment."""

    path: str
    real: str
    links: tuple[str, ...]
    """Each symbolic link on the path, by a path without other links."""
    about: os.stat_result | None
    """None when the path does not exist yet."""
    repositories: dict[Repository, list[str]]
    """The repositories above the path or a link, each with the paths that it could contain: the store and its links."""

    @property
    def identity(self) -> list[str]:
        return [self.real, "" if self.about is None else f"{self.about.st_ino}:{self.about.st_uid}"]

    @property
    def text(self) -> str:
        """The text that is stored, to compare it with the next check."""
        return "\0".join([*self.identity, *self.links, *(found.stamp for found in self.repositories)])


def check_path_ownership(path: str, beside: Iterable[str] = ()) -> None:
    """Refuses a store that others could have filled. `path` is absolute and need not exist. `beside` are other paths
    that mam writes to; no link of a repository may lead to them either."""
    seen = inspect_path(path, beside)
    _check_modes(seen)
    before = _read_memory(path)
    if before == seen.text or is_approved(seen):
        return
    problem = ownership_problem(seen, known=before.split("\0")[:2] == seen.identity)
    if problem is not None:
        raise StoreUntrusted(store=path, problem=problem)
    _write_memory(seen)


def remember_created(path: str, beside: Iterable[str] = ()) -> None:
    """Stores the facts about a store that mam has just checked and created, so that git need not run again."""
    _write_memory(inspect_path(path, beside))


def is_approved_path(path: str) -> bool:
    """Whether the user approved a store although another user owns a directory or file of it."""
    return is_approved(inspect_path(os.path.abspath(path)))


def is_approved(seen: PathFacts) -> bool:
    from mam.config.trust import is_trusted_store

    return seen.about is not None and is_trusted_store(seen.path, seen.real, seen.about.st_ino)


def inspect_path(path: str, beside: Iterable[str] = ()) -> PathFacts:
    real, links = _resolve_links(path)
    for place in beside:
        links += [link for link in _resolve_links(place)[1] if link not in links]
    try:
        about = os.stat(real)
    except OSError:
        about = None
    repositories: dict[Repository, list[str]] = {}
    for thing in (real, *links):
        for found in repositories_of(thing):
            repositories.setdefault(found, []).append(thing)
            if thing == real and (about is None or not stat.S_ISDIR(about.st_mode)):
                repositories[found] += [real + suffix for suffix in _DATABASE_SUFFIXES]
    return PathFacts(path=path, real=real, links=tuple(links), about=about, repositories=repositories)


def _resolve_links(path: str) -> tuple[str, list[str]]:
    """The path without symbolic links, and the links on it."""
    real, links, rest = "/", list[str](), path.split("/")[::-1]
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        here = os.path.dirname(real) if name == ".." else os.path.join(real, name)
        try:
            target = os.readlink(here)
        except OSError:
            real = here
            continue
        links.append(here)
        if len(links) > _MAX_LINKS:
            return here, links  # a cycle; opening the path reports it
        real = "/" if target.startswith("/") else real
        rest += target.split("/")[::-1]
    return real, links


def other_writers(mode: int) -> str | None:
    """Who else can write to a directory. A sticky bit prevents removing files, but not adding them."""
    if mode & stat.S_IWOTH:
        return "everybody"
    return "its group" if mode & stat.S_IWGRP else None


def _check_modes(seen: PathFacts) -> None:
    above = os.path.dirname(seen.real)
    names = (os.path.basename(above), os.path.basename(os.path.dirname(seen.path)))
    places = [(seen.real, seen.about)]
    if any(name in HOMES for name in names):
        places.append((above, _stat(above)))
    for place, about in places:
        who = None if about is None or not stat.S_ISDIR(about.st_mode) else other_writers(about.st_mode)
        if who is not None:
            why = f"can be written by {who}, who could put jobs there; `chmod go-w {place}` first"
            raise StoreUnavailable(store=place, problem=why)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def ownership_problem(seen: PathFacts, *, known: bool = False) -> str | None:
    """Why the store is not the user's own, or None. `known`: it was the user's own at the last check."""
    me = os.geteuid()
    if seen.about is not None and seen.about.st_uid != me:
        return f"belongs to another user (uid {seen.about.st_uid})"
    for link in seen.links:
        about = _stat(link)
        if about is None or about.st_uid not in (me, 0):
            return f"is reached through {link}, a link of another user"
    if seen.about is not None and not known:
        _wait_for_git(seen)
    try:
        return next(_tracked_problems(seen, known=known), None)
    except GitUnavailable as silent:
        if not seen.links and not any(os.path.lexists(seen.real + suffix) for suffix in ("", *_DATABASE_SUFFIXES)):
            return None  # nothing exists that could have come with the repository
        return f"lies in a repository, and git cannot be asked whether it came with it ({silent})"


def _wait_for_git(seen: PathFacts) -> None:
    for repository in seen.repositories:
        if repository.is_changing:
            why = f"git is changing the repository {repository.level} that holds it; try again when git has finished"
            raise StoreUnavailable(store=seen.path, problem=why)


def _tracked_problems(seen: PathFacts, *, known: bool) -> Iterator[str]:
    """Record files that git tracks are harmless in a known store: the store does not import them."""
    for repository, things in seen.repositories.items():
        for thing, name in tracked_files(repository, things):
            if thing in seen.links:
                yield f"is reached through {thing}, a link that came with the repository {repository.level}"
            elif not (known and name.endswith(".json") and "/" not in name):
                file = os.path.join(thing, name) if name else thing
                yield f"came with the repository {repository.level}: git tracks {file}"


class _Everything:
    def __contains__(self, _rel: object) -> bool:
        return True


class TrackedFiles:
    """The files below a directory that git tracks; none when the user has approved the directory. For the inbox, which
    reads single files."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._text: str | None = None
        self._names: Container[str] = frozenset()

    def now(self) -> Container[str] | None:
        """Their paths below the directory; None while git changes a repository. Every file counts as tracked when git
        cannot run."""
        seen = inspect_path(self._directory)
        if any(repository.is_changing for repository in seen.repositories):
            return None
        if seen.text != self._text:
            self._names, self._text = self._asked(seen), seen.text
        return self._names

    def _asked(self, seen: PathFacts) -> Container[str]:
        if not seen.repositories or is_approved(seen):
            return frozenset()
        try:
            found = [
                tracked_files(repository, [seen.real])
                for repository, of in seen.repositories.items()
                if seen.real in of
            ]
            return frozenset(name for names in found for _place, name in names)
        except GitUnavailable:
            return _Everything()


def _memory_file(path: str) -> str:
    return os.path.join(state_directory(), OWNED, as_file_name(path))


def _read_memory(path: str) -> str:
    """The stored text; empty when there is none, or when another user could have written it."""
    file = _memory_file(path)
    try:
        for place in (os.path.dirname(file), file):
            about = os.lstat(place)
            if about.st_uid != os.geteuid() or about.st_mode & 0o022 or stat.S_ISLNK(about.st_mode):
                return ""
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except (OSError, ValueError):
        return ""


def _write_memory(seen: PathFacts) -> None:
    """A failure is ignored; git then runs again at the next check."""
    if seen.about is None:
        return
    file = _memory_file(seen.path)
    temporary = os.path.join(os.path.dirname(file), f".{os.urandom(8).hex()}")
    try:
        make_private(os.path.dirname(file))
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as opened:
            opened.write(seen.text)
        os.rename(temporary, file)
    except (OSError, ValueError, StoreUnavailable):
        _discard(temporary)


def _discard(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        pass
