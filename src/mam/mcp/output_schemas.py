"""The output schemas of the tools, from `schemas/mcp_output.schema.json`, without their descriptions.

The file is for people too; a client needs the types alone, and an agent may pay for every word.
"""

from __future__ import annotations

import os

from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json

FILE = "mcp_output.schema.json"


def output_schema(tool: str) -> Json | None:
    schema = read_schema()["$defs"].get(tool)
    return None if schema is None else _bare(schema)


def read_schema() -> Json:
    """From the installed package, else from the source tree."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bases = (own, os.path.dirname(os.path.dirname(own)))
    for base in bases:
        try:
            with open(os.path.join(base, "schemas", FILE), "rb") as file:
                found: Json = safe_json(file.read())
                return found
        except FileNotFoundError:
            continue
    raise FileNotFoundError(FILE)


def _bare(schema: Json) -> Json:
    """Only the types of the properties that are always there: clients check them, and the rest costs tokens."""
    always = schema["required"]
    return {"type": "object", "properties": {name: {"type": schema["properties"][name]["type"]} for name in always},
            "required": always}  # fmt: skip
