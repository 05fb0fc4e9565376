"""A process of mam 0.1.0 that has a store open and acts on request; it runs the code of that tag.

`python old_mam.py KIND PATH`, with the old code in PYTHONPATH: it prints `ready`, then an answer for each line that
it reads.
"""

from __future__ import annotations

import sys


def main() -> None:
    from mam.errors import MamError
    from mam.registry import Registry
    from mam.stores.port import Query

    kind, path = sys.argv[1:]
    if kind == "files":
        from mam.stores.files.store import FilesStore as Store
    else:
        from mam.stores.sqlite.store import SqliteStore as Store  # type: ignore[assignment]
    registry = Registry(Store(path))
    list(registry.store.select(Query()))
    registry.heartbeat("running0", attempt=1)
    print("ready", flush=True)
    for number, _line in enumerate(sys.stdin):
        try:
            registry.publish("running0", event="progress", attempt=1)
            registry.register(prompt="late", agent="codex", label="late", job_id=f"late{number:04}")
            registry.pick("keyed", owner="elder")
            print("done", flush=True)
        except MamError as error:
            print(f"refused {error.exit_code} {error}".replace("\n", " / "), flush=True)
        except Exception as error:  # the test examines what the old code does then
            print(f"crashed {error!r}".replace("\n", " / "), flush=True)


if __name__ == "__main__":
    main()
