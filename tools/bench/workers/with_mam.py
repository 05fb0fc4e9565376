"""mam: Registry.pick and Registry.complete, on one connection."""

from __future__ import annotations

import sys

from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore
from tools.bench.working import claim_and_complete


def main() -> None:
    registry = Registry(PostgresStore(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            claim_and_complete(registry)
        print("done", flush=True)


if __name__ == "__main__":
    main()
