"""Print every setting: value, origin, default and variable.

In a pipe: name, value, origin, default and variable, separated by tabs; values are JSON.
"""

from __future__ import annotations

from mam.cli.render.streams import json_text, print_json_array, print_row, stdout_is_terminal
from mam.config.keys import UNTRUSTED, all_current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.config.keys import SettingValue

WIDE = 100
"""The width that has room for the defaults."""


def add_arguments(parser: Parser) -> None:
    """No arguments of its own."""


def run(options: Options) -> int:
    found = all_current()
    if options.json:
        print_json_array(as_json(one) for one in found)
    elif stdout_is_terminal():
        _table(found)
    else:
        for one in found:
            print_row(
                one.key.name, json_text(one.value), one.source, json_text(one.default), one.key.setting.variable or ""
            )
    return 0


def as_json(one: SettingValue) -> dict[str, Any]:
    return {
        "key": one.key.name,
        "value": one.value,
        "source": one.source,
        "file": one.file,
        "default": one.default,
        "variable": one.key.setting.variable,
        "meaning": one.key.setting.meaning,
    }


def shown(value: Any) -> str:
    """For people: text without quotes, and an empty text for None."""
    return "" if value is None else value if isinstance(value, str) else json_text(value)


def _table(found: list[SettingValue]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mam.cli.render.text import one_line

    console = Console(highlight=False)
    wide = console.width >= WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("SETTING", "VALUE", "FROM", *(("DEFAULT",) if wide else ()), "VARIABLE"):
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1 if name == "VALUE" else None)
    for one in found:
        is_set = one.source != "default"
        cells = [
            Text(one_line(one.key.name), style="bold" if is_set else ""),
            Text(one_line(shown(one.value)), style="" if is_set else "dim"),
            Text(one.source, style="yellow" if one.source == UNTRUSTED else "" if is_set else "dim"),
            *([Text(one_line(shown(one.default)), style="dim")] if wide else []),
            Text(one.key.setting.variable or "", style="dim"),
        ]
        table.add_row(*cells)
    console.print(table)
