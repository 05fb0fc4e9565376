"""SQL lives in .sql files: `-- name: claim` begins a query, and the comment behind it says what it is for."""

from __future__ import annotations

import os

MARK = "-- name: "


def load_queries(file: str, name: str = "queries.sql", **parts: str) -> dict[str, str]:
    """The named queries of a file beside a module, whose own `__file__` is `file`. `{part}` in a query stands for the
    part of that name."""
    queries: dict[str, list[str]] = {}
    current: list[str] = []
    with open(os.path.join(os.path.dirname(file), name), encoding="utf-8") as text:
        for line in text:
            if line.startswith(MARK):
                current = queries.setdefault(line.removeprefix(MARK).strip(), [])
            elif line.strip() and not line.lstrip().startswith("--"):
                current.append(line)
    return {key: _filled("".join(lines).strip().rstrip(";"), parts) for key, lines in queries.items()}


def _filled(query: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        query = query.replace(f"{{{name}}}", part)
    return query
