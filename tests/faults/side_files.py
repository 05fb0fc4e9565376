"""Stores secrets and pauses and prints the name of each afterwards: `python -m tests.faults.side_files KIND PATH`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mam.jobs.pause import Pause
from tests.faults.store_kinds import STORE_KINDS

if TYPE_CHECKING:
    from mam.stores.port import Store

NAMES = ("one", "two", "three")


def kept(store: Store) -> list[str]:
    secrets = [f"secret {name}" for name in NAMES if store.secrets(name)]
    return secrets + [f"pause {pause.agent}" for pause in store.pauses()]


def main() -> None:
    store_kind, place = STORE_KINDS[sys.argv[1]], Path(sys.argv[2])
    store_kind.make(place)
    store = store_kind.open(place)
    for name in NAMES:
        store.keep_secrets(name, {"auth_token": "t"})
        os.write(1, f"secret {name}\n".encode())
        store.pause(Pause(agent=name, label=None, until=None, reason="r", made_at="now"))
        os.write(1, f"pause {name}\n".encode())


if __name__ == "__main__":
    main()
