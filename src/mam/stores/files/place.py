"""Whether a directory is a registry: a name that was mistyped must not become one by being looked at."""

from __future__ import annotations

import os

from mam.jobs.rules import is_job_id
from mam.stores.files.book import INDEX, STORE
from mam.stores.files.journal import ACTIVE

RECORDS_TRIED, RECORD_LIMIT = 20, 1 << 20


def is_files_store(path: str) -> bool:
    """A journal of mam's, or records that say who they are, as the old scripts left them."""
    if any(os.path.isfile(os.path.join(path, STORE, name)) for name in (ACTIVE, INDEX)):
        return True
    try:
        names = [name for name in os.listdir(path) if name.endswith(".json") and is_job_id(name[:-5])]
    except OSError:
        return False
    return any(_is_record(os.path.join(path, name)) for name in names[:RECORDS_TRIED])


def _is_record(path: str) -> bool:
    from mam.reading import read_regular
    from mam.strict_json import safe_json

    try:
        _, content = read_regular(path, RECORD_LIMIT, os.O_NOFOLLOW)
        found = safe_json(content)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("job_id") == os.path.basename(path)[:-5] and "prompt" in found
