"""Open the session directory: in PostgreSQL if the jobs are there, otherwise the user's files."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.port import Directory


def open_directory(store: str | None = None, registry_dir: str | None = None) -> Directory:
    from mam.config.settings import load_config
    from mam.location.stores import POSTGRES, is_own_directory, locate

    config = load_config()
    try:
        located = locate(store, registry_dir, config)
    except StoreUnavailable:
        located = None  # the job store is unusable, but the sessions are not stored there
    if located is not None and located.kind == POSTGRES:
        from mam.agents.postgres_directory import PostgresDirectory

        return PostgresDirectory(located.address)
    from mam.agents.files_directory import FilesDirectory, agents_directory
    from mam.location.ownership import check_path_ownership

    root = agents_directory()
    if is_own_directory(root) or not os.path.exists(root):  # FilesDirectory rejects a root of another user
        check_path_ownership(root)
    return FilesDirectory(root, lock_wait_seconds=config.lock_wait_seconds)


def configured_prefix() -> str:
    """The prefix of names in records: MAM, HOUMAO or none."""
    from mam.config.settings import load_config

    return load_config().agent_prefix
