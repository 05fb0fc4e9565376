"""Recognises the directory of a registry: a mistyped name must not become one."""

from __future__ import annotations

import os

from mam.jobs.input_rules import is_job_id
from mam.util.strict_json import strict_json

RECORDS_TRIED, RECORD_LIMIT = 20, 1 << 20
_OWN = (os.path.join(".store", "registry.db"), os.path.join(".store", "journal.log"))


def is_files_store(path: str) -> bool:
    """A database of mam, or records of the old scripts whose `job_id` matches the file name."""
    if any(os.path.isfile(os.path.join(path, name)) for name in _OWN):
        return True
    try:
        names = [name for name in os.listdir(path) if name.endswith(".json") and is_job_id(name[:-5])]
    except OSError:
        return False
    return any(_is_record(os.path.join(path, name)) for name in names[:RECORDS_TRIED])


def _is_record(path: str) -> bool:
    from mam.util.safe_read import read_regular

    try:
        _, content = read_regular(path, RECORD_LIMIT, os.O_NOFOLLOW)
        found = strict_json(content)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("job_id") == os.path.basename(path)[:-5] and "prompt" in found
