#!/usr/bin/env python3
"""The old command: `publish_event.py --job ID --event NAME [--detail TEXT] [--data JSON]`."""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import mam  # noqa: F401 - only whether it is installed
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from mam.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "publish_event")
    main()
