"""The directories and files on this host that belong to the jobs of a store.

They are outside of every project: programs that search upward for their settings, above all git, would otherwise find
the user's repository around a job's fresh directory and work there.
"""

from __future__ import annotations

import hashlib
import os

from mam.util.state_dir import state_directory

PRIVATE = ".private"


def work_directory(store_address: str) -> str:
    """One per store. The address contains no password."""
    name = hashlib.sha256(store_address.encode(errors="surrogateescape")).hexdigest()[:16]
    return os.path.join(state_directory(), "work", name)


def store_mark(work_directory: str) -> str:
    """Marks the environment of processes of this store's jobs on this host."""
    return hashlib.sha256(os.fsencode(work_directory)).hexdigest()[:16]


def private_prefix(work_directory: str, job_id: str, attempt: int) -> str:
    """The prefix of an attempt's own files: `….script`, `….brief.md`. A directory per attempt would double the cost.
    Nothing else is in their directory, since a script may treat its own directory as its property."""
    return os.path.join(work_directory, PRIVATE, f"{job_id}.{attempt}")


def output_path(work_directory: str, job_id: str, attempt: int) -> str:
    """The path of an attempt's output log. No job id contains a dot."""
    return os.path.join(work_directory, f"{job_id}.{attempt}.output")


def existing_output_path(work_directory: str, job_id: str, attempt: int) -> str:
    """The same, or the path that older versions used."""
    older = os.path.join(work_directory, job_id, str(attempt), "output")
    return older if os.path.isdir(older) else output_path(work_directory, job_id, attempt)
