"""Locates, creates and opens the store.

A flag wins over MAM_STORE, which wins over the user's file. Without these, mam uses the nearest `.mam/jobs` (then
`.hermes/jobs`) upward from the working directory. From a linked git worktree the search continues at its main checkout,
so that all worktrees share one store.
"""

from __future__ import annotations

import os
import stat

from mam.errors import BadInput, StoreMissing, StoreUnavailable
from mam.location import HOMES
from mam.location.git_tracking import git_directory_of, repositories_of
from mam.util.frozen import Frozen
from mam.util.gitignore import ignore_in_git
from mam.util.state_dir import remember_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.config.settings import Config
    from mam.registry import Registry
    from mam.stores.port import Store

FILES, SQLITE_KIND, POSTGRES = "files", "sqlite", "postgresql"
SQLITE = "sqlite://"
STORE_NAMES = tuple(f"{home}/jobs" for home in HOMES)
LOGS_NAME = "delegate_job_logs"

_KINDS = "a directory, sqlite:///path or postgresql://user@host/database"
_WORDS = frozenset(("host", "hostaddr", "port", "user", "password", "passfile", "dbname", "service", "sslmode"))
"""The keywords of PostgreSQL's other form of an address: `host=… password=…`."""

_OF_POSTGRES = ("psycopg", "orjson")
"""The packages of the extra `postgres`."""


class StoreLocation(Frozen):
    """Where a store is: its address, why it was chosen, and whether it exists."""

    kind: str
    address: str
    """May contain a password; messages use `shown`."""
    why: str
    exists: bool | None
    """None for a server: only a connection can tell."""

    @property
    def logs_dir(self) -> str:
        """The audit log is beside the store, so that it survives the store."""
        logs_dir = os.environ.get("DELEGATE_JOB_LOGS_DIR")
        if logs_dir:
            return os.path.abspath(logs_dir)
        # A server has no directory: its log is where a store of the working directory would be.
        beside = os.path.join(_working_directory(), ".mam") if self.kind == POSTGRES else os.path.dirname(self.path)
        return os.path.join(beside, LOGS_NAME)

    @property
    def shown(self) -> str:
        """The address without a password."""
        if self.kind != POSTGRES:
            return self.address
        require_packages(self)
        from mam.stores.postgres.connection import Server

        return Server(self.address).address

    @property
    def path(self) -> str:
        return self.address.removeprefix(SQLITE)


def locate(flag_store: str | None, flag_registry_dir: str | None, config: Config) -> StoreLocation:
    if flag_store is not None and flag_registry_dir is not None:
        raise BadInput(why="--store and --registry-dir name the same thing; give one of them")
    if flag_store is not None:
        return parse_address(flag_store, "--store")
    if flag_registry_dir is not None:
        return _files_location(flag_registry_dir, "--registry-dir")
    if os.environ.get("MAM_STORE"):
        return parse_address(os.environ["MAM_STORE"], "MAM_STORE")
    if config.store is not None:
        return parse_address(config.store, "store in the user's config.toml")
    return nearest_store(_working_directory())


def open_registry(
    flag_store: str | None,
    flag_registry_dir: str | None,
    config: Config,
    *,
    create: bool = False,
    announce: Callable[[str], None] | None = None,
) -> Registry:
    """The registry over the chosen store. `announce` is called with the address of a store that was created."""
    located = locate(flag_store, flag_registry_dir, config)
    if create and located.exists is False:
        return _create_and_open(located, config, announce)
    try:
        return open_located(located, config)
    except StoreMissing:
        if not create:
            raise
        return _create_and_open(located, config, announce)


def _create_and_open(located: StoreLocation, config: Config, announce: Callable[[str], None] | None) -> Registry:
    if create_store(located, config) and announce is not None:
        announce(located.shown)
    return open_located(located, config)


def open_located(located: StoreLocation, config: Config) -> Registry:
    from mam.audit.sync import AuditLog
    from mam.registry import Registry

    store = open_store(located, config)
    remember_store(store.address)
    return Registry(store, AuditLog(located.logs_dir), require_attempt=config.require_attempt)


def check_ownership(located: StoreLocation) -> None:
    """Refuses a store that came with a repository or that others can write to. A server has its own access rules."""
    if located.kind != POSTGRES:
        from mam.location.ownership import check_path_ownership

        check_path_ownership(located.path, (located.logs_dir,))


def open_store(located: StoreLocation, config: Config, lease_seconds: float | None = None) -> Store:
    """`lease_seconds` is the lease of the worker that uses the store, if a worker does."""
    check_ownership(located)
    require_packages(located)
    if located.kind == SQLITE_KIND:
        from mam.stores.sqlite.store import SqliteStore

        return SqliteStore(located.path, lock_wait_seconds=config.lock_wait_seconds)
    if located.kind == POSTGRES:
        from mam.stores.postgres.store import PostgresStore

        return PostgresStore(located.address, lease_seconds=lease_seconds)
    from mam.stores.files.connection import check_directory
    from mam.stores.files.layout import is_files_store
    from mam.stores.files.store import FilesStore

    check_directory(located.path)
    if located.exists is False and not is_files_store(located.path):
        raise StoreMissing(store=located.address)  # do not create files in a directory that was named by mistake
    return FilesStore(located.path, lock_wait_seconds=config.lock_wait_seconds)


def catch_up_log(located: StoreLocation, config: Config, copied: Callable[[int], None] = lambda _count: None) -> None:
    """Writes into the audit log what an earlier command could not write."""
    from mam.audit.sync import AuditLog

    AuditLog(located.logs_dir).catch_up(open_store(located, config), copied)


def create_store(located: StoreLocation, config: Config) -> bool:
    """Creates or upgrades the store; returns whether there was anything to do."""
    check_ownership(located)
    made = _create(located, config.lock_wait_seconds)
    if made:
        keep_out_of_git(located)
        remember_created_store(located)
    return made


def remember_created_store(located: StoreLocation) -> None:
    """Records that mam created this store, so that later checks accept it."""
    if located.kind != POSTGRES:
        from mam.location.ownership import remember_created

        remember_created(located.path, (located.logs_dir,))


def keep_out_of_git(located: StoreLocation) -> None:
    """Keeps a store that mam created out of the project's git history; the audit log does the same for itself."""
    parent = os.path.dirname(located.path)
    if located.kind == POSTGRES:
        return
    if os.path.basename(parent) in HOMES:
        ignore_in_git(parent)
    elif located.kind == FILES:
        ignore_in_git(located.path)
    elif any(repositories_of(os.path.realpath(parent))):
        # The directory is the user's: only the database and the files beside it are excluded.
        name = os.path.basename(located.path)
        ignore_in_git(parent, "/.gitignore\n" + "/" + _escape_pattern(name) + "*\n")


def _escape_pattern(name: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in name)


def store_schema(located: StoreLocation) -> str:
    """The SQL that `mam init` would run, for users who run it themselves."""
    require_packages(located)
    if located.kind == SQLITE_KIND:
        from mam.stores.sqlite.database import schema_text

        return schema_text()
    if located.kind == POSTGRES:
        from mam.stores.postgres import schema

        return schema.schema_text()
    raise BadInput(why="a directory of files has no schema; --sql is for sqlite:///path and postgresql://…")


def _create(located: StoreLocation, lock_wait_seconds: float) -> bool:
    require_packages(located)
    if located.kind == SQLITE_KIND:
        from mam.stores.sqlite.store import create_sqlite_store

        return create_sqlite_store(located.path, lock_wait_seconds)
    if located.kind == POSTGRES:
        from mam.stores.postgres.store import create_postgres_store

        return create_postgres_store(located.address)
    if located.exists:
        return False
    from mam.stores.files.layout import is_files_store
    from mam.stores.files.store import FilesStore, create_files_store

    made = create_files_store(located.path) or not is_files_store(located.path)
    FilesStore(
        located.path, lock_wait_seconds=lock_wait_seconds
    ).end_offset()  # creates the journal, which marks the directory as a store
    return made


def require_packages(located: StoreLocation) -> None:
    """BadInput with the command that installs a missing package that the store needs."""
    try:
        for module in _OF_POSTGRES if located.kind == POSTGRES else ("apsw",):
            __import__(module)
    except ImportError:
        from mam.util.extras import APSW, command_for, command_to_install

        if located.kind == POSTGRES:
            raise BadInput(why=f"this store needs the extra `postgres`: {command_for('postgres')}") from None
        why = (
            f"this store needs the package apsw: {command_to_install(APSW)} (where there is no wheel for this platform,"
            " that compiles it, which needs a C compiler such as gcc or clang and the header files of Python)"
        )
        raise BadInput(why=why) from None


def parse_address(text: str, by: str) -> StoreLocation:
    scheme, colon, _ = text.partition("://")
    if not colon:
        return _files_location(text, by)
    if scheme == SQLITE_KIND:
        return _sqlite_location(text, by)
    if scheme in (POSTGRES, "postgres"):
        return StoreLocation(kind=POSTGRES, address=text, why=f"named by {by}", exists=None)
    # The address may contain a password, so the message repeats only its scheme.
    what = f"{scheme[:40]!r}" if scheme.replace("+", "").isalnum() else "that"
    raise BadInput(why=f"{by}: {what} is not a kind of store; name {_KINDS}")


def _sqlite_location(text: str, by: str) -> StoreLocation:
    path = text.removeprefix(SQLITE)
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise BadInput(why=f"{by}: an SQLite store is named by its whole path, as in sqlite:///home/me/jobs.db")
    path = os.path.normpath(path)
    return StoreLocation(kind=SQLITE_KIND, address=SQLITE + path, why=f"named by {by}", exists=os.path.exists(path))


def _files_location(text: str, by: str) -> StoreLocation:
    if not text.strip() or "\0" in text:
        raise BadInput(why=f"{by} names no directory")
    if _is_almost_an_address(text):  # not repeated in the message, since it may contain a password
        raise BadInput(why=f"{by}: that is almost an address; name {_KINDS}; ./ before a directory of such a name")
    path = os.path.join(_working_directory(), os.path.expanduser(text)) if not text.startswith("/") else text
    path = os.path.normpath(path)
    from mam.stores.files.layout import is_files_store

    return StoreLocation(kind=FILES, address=path, why=f"named by {by}", exists=is_files_store(path))


def _is_almost_an_address(text: str) -> bool:
    """Whether the text looks like a mistyped address of a database."""
    word = text.strip().lower()
    scheme, colon, _ = word.partition(":")
    if colon and scheme.startswith((SQLITE_KIND, "postgres")) and "/" not in scheme:
        return True
    settings = [] if word.startswith(("/", ".", "~")) else word.replace(" =", "=").split()
    return any("=" in setting and setting.partition("=")[0] in _WORDS for setting in settings)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise BadInput(why="the working directory no longer exists; cd to one that does") from None


def nearest_store(here: str) -> StoreLocation:
    default = os.path.join(here, STORE_NAMES[0])
    why = f"the default: there is none upward from {here}"
    for level, checkout in levels_from(here):
        if checkout:
            default = os.path.join(level, STORE_NAMES[0])
            why = f"the default: there is none upward from {level}, the main checkout of this git worktree"
        for name in STORE_NAMES:
            path = os.path.join(level, name)
            if is_own_directory(os.path.dirname(path)) and is_own_directory(path):
                return StoreLocation(
                    kind=FILES, address=path, why=f"the nearest {name} upward from {here}", exists=True
                )
    if os.path.lexists(default):
        raise StoreUnavailable(store=default, problem="not a directory of yours; name another place with --store")
    return StoreLocation(kind=FILES, address=default, why=why, exists=False)


def levels_from(here: str) -> Iterator[tuple[str, bool]]:
    """The directories from here to the root, and whether each is the main checkout of a linked worktree."""
    level, checkout, seen = here, False, set()
    while level not in seen:
        seen.add(level)
        yield level, checkout
        main = _main_checkout(level)
        checkout = main is not None and main not in seen
        level = main if main is not None and checkout else os.path.dirname(level)


def _main_checkout(level: str) -> str | None:
    """The main checkout of a linked worktree, whose `.git` is a file: `gitdir: <main>/.git/worktrees/<name>`."""
    try:
        found = os.lstat(os.path.join(level, ".git"))
    except OSError:
        return None
    gitdir = git_directory_of(level) if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() else None
    if gitdir is None:
        return None
    worktrees, common = os.path.dirname(gitdir), os.path.dirname(os.path.dirname(gitdir))
    if os.path.basename(worktrees) != "worktrees" or os.path.basename(common) != ".git":
        return None
    main = os.path.dirname(common)
    return main if os.path.isdir(main) else None


def is_own_directory(path: str) -> bool:
    """Whether the user owns the directory: another user's directory (in /tmp, say) is never taken for a store."""
    try:
        found, link = os.stat(path), os.lstat(path)
    except OSError:
        return False
    me = os.geteuid()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == me and link.st_uid == me
