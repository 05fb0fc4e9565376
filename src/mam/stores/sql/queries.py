"""SQL lives in .sql files: `-- name: claim` begins a query, and the comment behind it says what it is for."""

from __future__ import annotations

import os

MARK = "-- name: "


def load_queries(file: str, name: str = "queries.sql") -> dict[str, str]:
    """The named queries beside a module; `file` is the module's own `__file__`."""
    queries: dict[str, list[str]] = {}
    current: list[str] = []
    with open(os.path.join(os.path.dirname(file), name), encoding="utf-8") as text:
        for line in text:
            if line.startswith(MARK):
                current = queries.setdefault(line.removeprefix(MARK).strip(), [])
            elif line.strip() and not line.lstrip().startswith("--"):
                current.append(line)
    return {key: "".join(lines).strip().rstrip(";") for key, lines in queries.items()}
