"""The named queries as SQLite is asked them: by numbers, which takes a fraction of the time that names take."""

from __future__ import annotations

from _operator import itemgetter

from mam.stores.sql.gate import __file__ as gate_module
from mam.stores.sql.queries import load_queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Bound = Callable[[Any], Any]
    """From values by name to values in the order of the statement."""

_QUERIES = {**load_queries(gate_module, "gate.sql"), **load_queries(__file__)}
"""What this database says in other words than the index of files comes last."""


class _Statements(dict[str, "tuple[str, Bound]"]):
    """Made when they are first asked for: a command needs few of them."""

    def __missing__(self, query: str) -> tuple[str, Bound]:
        made = self[query] = _numbered(_QUERIES[query], [])
        return made


STATEMENTS = _Statements()
"""By the names of the queries, their text and how values are bound to it."""


def placed(query: str, *order: str) -> str:
    """The text of a query whose values are bound by their places in this order."""
    names = list(order)
    text, _ = _numbered(_QUERIES[query], names)
    assert len(names) == len(order), f"{query} has other values too: {names[len(order) :]}"
    return text


def _numbered(query: str, names: list[str]) -> tuple[str, Bound]:
    text, *parts = " ".join(query.split()).split(":")  # what is shorter is found sooner among the prepared ones
    for part in parts:
        end = next((at for at, letter in enumerate(part) if not (letter.isalnum() or letter == "_")), len(part))
        name = part[:end]
        if name not in names:
            names.append(name)
        text += f"?{names.index(name) + 1}{part[end:]}"
    if len(names) > 1:
        return text, itemgetter(*names)
    return text, (lambda values: (values[names[0]],)) if names else tuple
