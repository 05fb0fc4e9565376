"""Where a store's jobs have their private directories and files on this host.

Outside of every project: what searches upward for its settings (git above all) would otherwise find the user's own
repository around a job's fresh directory, and work there.
"""

from __future__ import annotations

import hashlib
import os

from mam.util.state_dir import state_directory

PRIVATE = ".private"


def work_directory(store_address: str) -> str:
    """One for each store; the address is the one without a password."""
    name = hashlib.sha256(store_address.encode(errors="surrogateescape")).hexdigest()[:16]
    return os.path.join(state_directory(), "work", name)


def store_mark(work_directory: str) -> str:
    """A word by which the processes of this store's jobs on this host are told from those of others."""
    return hashlib.sha256(os.fsencode(work_directory)).hexdigest()[:16]


def private_prefix(work_directory: str, job_id: str, attempt: int) -> str:
    """How the names of an attempt's own files begin: `….script`, `….brief.md`. A directory for each attempt would cost
    as much as what is in it. Theirs holds nothing else, since a script may take the place where it lies for its own."""
    return os.path.join(work_directory, PRIVATE, f"{job_id}.{attempt}")


def output_path(work_directory: str, job_id: str, attempt: int) -> str:
    """The name of an attempt's log. No job has an id with a dot."""
    return os.path.join(work_directory, f"{job_id}.{attempt}.output")


def existing_output_path(work_directory: str, job_id: str, attempt: int) -> str:
    """The same, or where older versions have put it."""
    older = os.path.join(work_directory, job_id, str(attempt), "output")
    return older if os.path.isdir(older) else output_path(work_directory, job_id, attempt)
