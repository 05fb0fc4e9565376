"""The tools, one file each. Agents pay for every word here with each session, so descriptions are short."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.caller import Caller
    from mam.mcp.messages import Json
    from mam.mcp.tool import Tool

NAMES = ("submit", "wait", "show", "list", "result", "cancel", "ask", "claim", "report")


def find_tool(name: str, caller: Caller) -> Tool | None:
    """The tool of this name, if this caller is offered it."""
    if name not in NAMES:
        return None
    tool: Tool = import_module(f"mam.mcp.tools.{name}").TOOL
    return tool if _is_offered(tool, caller) else None


def tools_of(caller: Caller) -> list[Tool]:
    return [tool for name in NAMES if (tool := find_tool(name, caller)) is not None]


def list_tools(caller: Caller) -> list[Json]:
    """As `tools/list` shows them, always in the same order."""
    from mam.mcp.output_schemas import output_schema

    return [tool.to_json(output_schema(tool.name)) for tool in tools_of(caller)]


def _is_offered(tool: Tool, caller: Caller) -> bool:
    if tool.for_workers:
        return caller.may_write and caller.is_worker
    return not tool.writes or (caller.may_write and caller.may_submit)
