"""Registers jobs on a files store and prints the id of each: `python -m tests.faults.register_loop PATH`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mam.registry import Registry
from tests.faults.store_kinds import HOMES


def main() -> None:
    home, place = HOMES["files"], Path(sys.argv[1])
    home.make(place)
    registry = Registry(home.open(place))
    for _ in range(3):
        os.write(1, f"{registry.register(prompt='p', agent='codex').job.job_id}\n".encode())


if __name__ == "__main__":
    main()
