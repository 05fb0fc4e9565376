#!/usr/bin/env python3
"""The old command: `job_subscriber.py --job ID [--timeout S] [--idle-timeout S]`, in mam.cli.verbs."""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import mam  # noqa: F401 - only whether it is installed
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from mam.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "job_subscriber")
    main()
