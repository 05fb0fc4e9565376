"""Finds the files that git tracks at a path, in every repository above it, without running code of a repository.

A store may be inside several repositories: a nested one, a submodule, a home directory. The stamps of their indexes
show whether an earlier result is still valid, so git runs only after an index has changed.
"""

from __future__ import annotations

import os
import stat

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GIT_TIMEOUT_SECONDS = 60.0
_POINTER_LIMIT = 8192
_SAFE = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "protocol.allow=never")


class GitUnavailable(Exception):
    """git could not be run; the text is the reason."""


class Repository(Frozen):
    """A work tree and its git directory."""

    level: str
    git_directory: str
    stamp: str
    """Identifies the state of the index; empty without one. git replaces the file, so each change has a new stamp."""

    @property
    def is_changing(self) -> bool:
        """Whether git is changing the repository. It writes files before the index that names them."""
        return os.path.lexists(os.path.join(self.git_directory, "index.lock"))


def repositories_of(place: str) -> Iterator[Repository]:
    """The repositories from `place` up to the root. `place` contains no symbolic link."""
    level = place
    while True:
        git_directory = git_directory_of(level)
        if git_directory is not None:
            stamp = _stamp(git_directory)
            yield Repository(level=level, git_directory=git_directory, stamp=stamp)
        above = os.path.dirname(level)
        if above == level:
            return
        level = above


def git_directory_of(level: str) -> str | None:
    """The git directory: `.git`, or the path in it when it is a file, as in linked worktrees and submodules."""
    path = os.path.join(level, ".git")
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            return path
        if not stat.S_ISREG(found.st_mode) or found.st_size > _POINTER_LIMIT:
            return None
        with open(path, encoding="utf-8", errors="surrogateescape") as opened:
            text = opened.read(_POINTER_LIMIT)
    except OSError:
        return None
    if not text.startswith("gitdir:"):
        return None
    return os.path.normpath(os.path.join(level, text.removeprefix("gitdir:").strip()))


def _stamp(git_directory: str) -> str:
    index = os.path.join(git_directory, "index")
    try:
        found = os.stat(index)
    except (FileNotFoundError, NotADirectoryError):
        # A linked worktree may lack its repository, and only the repository knows what it tracks.
        return "" if os.path.isdir(git_directory) else f"{git_directory} is missing"
    except OSError as error:
        return f"{index}: {error.strerror}"  # git runs and reports the same error
    return f"{index}:{found.st_ino}:{found.st_mtime_ns}:{found.st_size}"


def tracked_files(repository: Repository, places: Sequence[str]) -> list[tuple[str, str]]:
    """The tracked files at or below the places: each place with the path below it, which is empty when git tracks the
    place itself."""
    if not repository.stamp:
        return []
    level = repository.level
    inside = {place: "" if place == level else os.path.relpath(place, level) for place in places}
    found = _ls_files(repository, inside.values())
    return [
        (place, entry[len(name) :].lstrip("/"))
        for place, name in inside.items()
        for entry in found
        if _is_below(level, name, entry)
    ]


def _is_below(level: str, inside: str, entry: str) -> bool:
    """git is called with case-insensitive paths; on a case-sensitive file system only equal paths are the same."""
    if not inside:
        return True
    begin, rest = entry[: len(inside)], entry[len(inside) :]
    if rest and not rest.startswith("/"):
        return False
    try:
        return begin == inside or os.path.samefile(os.path.join(level, begin), os.path.join(level, inside))
    except OSError:
        return False


def _ls_files(repository: Repository, inside: Iterable[str]) -> list[str]:
    """The only call of git: it reads the index, without settings of the user, the system or the environment."""
    import subprocess

    from mam.machine.environment import find_program, without_secrets

    kept = {name: value for name, value in without_secrets(os.environ).items() if not name.startswith("GIT_")}
    environ = {**kept, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0",
               "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}  # fmt: skip
    program = find_program("git", environ)
    if program is None:
        raise GitUnavailable("git is not on PATH")
    settings = [word for setting in _SAFE for word in ("-c", setting)]
    place = [f"--git-dir={repository.git_directory}", f"--work-tree={repository.level}"]
    names = ["ls-files", "-z", "--cached", "--", *(f":(top,literal,icase){name}" for name in inside)]
    argv = [program, "--no-pager", "--no-optional-locks", *settings, *place, *names]
    try:
        ran = subprocess.run(
            argv, env=environ, cwd=repository.level, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=GIT_TIMEOUT_SECONDS,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise GitUnavailable(str(error)) from None
    if ran.returncode:
        lines = ran.stderr.decode(errors="replace").strip().splitlines()
        raise GitUnavailable(lines[0][:200] if lines else f"git ls-files ended with {ran.returncode}")
    return [name for name in os.fsdecode(ran.stdout).split("\0") if name]
