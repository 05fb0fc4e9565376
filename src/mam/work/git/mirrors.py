"""Local mirrors of repositories that jobs name by owner and name.

Each address has two bare repositories. `transport.git` fetches and pushes; only mam can write its settings. `work.git`
borrows its objects and has the worktrees. Agents can write the settings of `work.git`, so mam never lets it contact
another host.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os

from mam.errors import FetchFailed, WorkDirMissing, WorkDirUnusable
from mam.util.frozen import Frozen
from mam.util.state_dir import make_private, state_directory
from mam.work.git.command import LONG_SECONDS, Git, GitFailed, at, service_option, with_transports
from mam.work.job_dir import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mam.jobs.record import Job

_UPSTREAM = "refs/remotes/origin"
_SHOWN_BRANCHES = 10


class Upstream(Frozen):
    """A repository that was fetched."""

    transport: str
    work: str
    address: str
    """May contain a password: for git, never for a record."""
    base: str
    """The commit that the target branch points to."""


def is_local(address: str) -> bool:
    return address.startswith(("/", "~"))


def guarded_service(service: str, address: str) -> tuple[str, ...]:
    """For a repository on this host, which an agent may have changed. A remote one has its own rules."""
    return (service_option(service, address),) if is_local(address) else ()


def repository_address(job: Job, repos: Mapping[str, str]) -> str:
    name = str((job.repository or {}).get("name"))
    if name not in repos:
        raise WorkDirMissing(job=job.job_id, why=f"no repository {name} is known here; [repos] in config.toml names it")
    address = repos[name]
    return os.path.expanduser(address) if is_local(address) else address


def fetch_mirror(job: Job, repos: Mapping[str, str], keep_open: tuple[int, ...]) -> Upstream:
    """FetchFailed may be temporary; WorkDirUnusable means that the branch does not exist. Neither deletes anything."""
    address = repository_address(job, repos)
    name, branch = (str((job.repository or {}).get(word)) for word in ("name", "branch"))
    with locked_mirror(address, name) as (transport, work, lock):
        git = with_transports(at(transport, keep_open=(*keep_open, lock)))
        try:
            # Without a configured remote, so that no file contains the address. A branch that was deleted there is
            # deleted here too; work that began from it keeps its commits.
            heads = f"+refs/heads/*:{_UPSTREAM}/*"
            end = guarded_service("upload-pack", address)
            git.text("fetch", "--prune", "--no-tags", "--quiet", *end, "--", address, heads, seconds=LONG_SECONDS)
        except GitFailed as failed:
            if failed.reports_shortage():
                raise WorkDirMissing(job=job.job_id, why=redact_address(str(failed), address)) from None
            raise FetchFailed(repository=name, why=redact_address(str(failed), address)) from None
        base = _commit(git, branch)
        if base is None:
            raise WorkDirUnusable(job=job.job_id, why=f"{name} has no branch {branch}{_branches(git)}")
    return Upstream(transport=transport, work=work, address=address, base=base)


@contextlib.contextmanager
def locked_mirror(address: str, name: str) -> Iterator[tuple[str, str, int]]:
    """Both repositories, created if necessary, and locked: one fetch or push at a time."""
    digest = hashlib.sha256(address.encode(errors="surrogateescape")).hexdigest()[:16]
    top = make_private(os.path.join(state_directory(), "mirrors"))
    folder = make_private(os.path.join(top, f"{name.rpartition('/')[2][:40]}-{digest}"))
    transport, work = (os.path.join(folder, kind) for kind in ("transport.git", "work.git"))
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make(transport, None)
        _make(work, os.path.join(transport, "objects"))
        yield transport, work, lock
    finally:
        os.close(lock)


def _make(path: str, lends: str | None) -> None:
    """Created under another name first, so that an incomplete repository is never used."""
    if os.path.isdir(path):
        return
    half = f"{path}.half"
    remove_tree(half)
    Git(where=()).text("init", "--quiet", "--bare", "--template=", half)
    if lends is not None:
        os.makedirs(os.path.join(half, "objects", "info"), exist_ok=True)
        with open(os.path.join(half, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
            file.write(f"{lends}\n")
    os.rename(half, path)


def redact_address(words: str, address: str) -> str:
    """git's message without the address, which may contain a password."""
    words = words.replace(address, "its address")
    login, at_sign, _ = address.partition("://")[2].rpartition("@")
    for secret in (login, login.partition(":")[2]) if at_sign else ():
        words = words.replace(secret, "…") if secret else words
    return words.rstrip(".")


def _commit(git: Git, branch: str) -> str | None:
    try:
        return git.path("rev-parse", "--verify", "--quiet", f"{_UPSTREAM}/{branch}^{{commit}}")
    except GitFailed:
        return None


def _branches(git: Git) -> str:
    found = git.text("for-each-ref", "--format=%(refname:lstrip=3)", "--count=1000", _UPSTREAM).split()
    names = [name for name in found if not name.startswith("mam/")]
    if not names:
        return "; it has none at all"
    more = " …" if len(names) > _SHOWN_BRANCHES else ""
    return f"; there are {', '.join(names[:_SHOWN_BRANCHES])}{more}"
