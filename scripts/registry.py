#!/usr/bin/env python3
"""The old registry script: imported, it is a library; run, it is the command `mam`."""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import mam  # noqa: F401 - only whether it is installed
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from mam.compat import (
    get_job,
    list_jobs,
    load_job,
    next_seq,
    pick_pending,
    register_job,
    registry_lock,
    update_status,
)

__all__ = [
    "get_job",
    "list_jobs",
    "load_job",
    "next_seq",
    "pick_pending",
    "register_job",
    "registry_lock",
    "update_status",
]

if __name__ == "__main__":
    from mam.__main__ import main

    main()
