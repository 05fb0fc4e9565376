"""Loads named queries from .sql files: `-- name: claim` begins a query, and a comment after it explains it."""

from __future__ import annotations

import os

MARK = "-- name: "
SHARED = __file__
"""`load_queries(SHARED)` loads the queries that both databases run."""

FIXED = (
    "number", "job_id", "version", "root", "awaited", "prompt", "created_at", "key", "retry_of", "continues",
    "parent_id", "exclusive",
)  # fmt: skip
"""Columns that no act on a registered job sets; the prompt has a query of its own."""


def load_queries(file: str, name: str = "queries.sql", **parts: str) -> dict[str, str]:
    """Loads the file `name` beside the module whose `__file__` is given, and replaces `{part}` in each query."""
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
