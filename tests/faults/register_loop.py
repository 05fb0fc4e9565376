"""Registers jobs on a files store and prints the id of each: `python -m tests.faults.register_loop PATH`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mam.registry import Registry
from tests.faults.store_kinds import STORE_KINDS


def main() -> None:
    store_kind, place = STORE_KINDS["files"], Path(sys.argv[1])
    store_kind.make(place)
    registry = Registry(store_kind.open(place))
    for _ in range(3):
        os.write(1, f"{registry.register(prompt='p', agent='codex').job.job_id}\n".encode())


if __name__ == "__main__":
    main()
