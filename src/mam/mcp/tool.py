"""A tool, and what it gives back."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.errors import MamError
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.mcp.outcome import Parked
    from mam.mcp.versions import Client


class Call(Frozen):
    """One call of a tool, with checked arguments."""

    service: Service
    client: Client
    arguments: Json
    responses: Json
    """What the user of the client answered to the forms of an earlier try of this call."""


class Tool(Frozen):
    name: str
    description: str
    properties: Json
    run: Callable[[Call], Json | Parked]
    """Returns a result of `tools/call`, or one that comes later."""
    required: tuple[str, ...] = ()
    writes: bool = False
    destroys: bool = False
    repeats: bool = False
    """Whether a second call with the same arguments changes nothing more."""
    for_workers: bool = False

    @property
    def schema(self) -> Json:
        return {
            "type": "object", "properties": self.properties, "required": list(self.required),
            "additionalProperties": False,
        }  # fmt: skip

    def to_json(self, output: Json | None) -> Json:
        hints = {"readOnlyHint": not self.writes, "openWorldHint": False}
        if self.writes:
            hints |= {"destructiveHint": self.destroys, "idempotentHint": self.repeats}
        shown = {"name": self.name, "description": self.description, "inputSchema": self.schema, "annotations": hints}
        return shown if output is None else {**shown, "outputSchema": output}


def tool_result(content: Json, *, is_error: bool = False) -> Json:
    """A result for programs and, as the same JSON in a text, for clients that read only text."""
    from mam.mcp.messages import encode

    text = encode(content).decode().rstrip("\n")
    return {"content": [{"type": "text", "text": text}], "structuredContent": content, "isError": is_error}


def error_result(error: MamError) -> Json:
    """An error that the model can act on. It has no structured content, which would have to follow the schema."""
    text = f"{error} (exit code {error.exit_code})"
    return {"content": [{"type": "text", "text": text}], "isError": True}
