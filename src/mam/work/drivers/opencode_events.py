"""The events of `opencode serve`, as the lines that `opencode run --format json` prints of the same. Pure."""

from __future__ import annotations

from mam.work.reports.report import get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

_PARTS = {"step-start": "step_start", "step-finish": "step_finish"}
_OVER = ("completed", "error")


class OpenCodeEvents:
    """Follows one conversation; those of subagents are not shown."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.is_over = False
        self._has_begun = False
        self._printed: set[str] = set()
        """Parts come again with every change; each is printed when it is whole, once."""

    def line(self, event: Json, at_ms: int) -> Json | None:
        """The line about one event; None for most."""
        kind, properties = event.get("type"), event.get("properties")
        part = get_path(properties, "part")
        session = get_path(part, "sessionID") if part is not None else get_path(properties, "sessionID")
        if session != self.session:
            return None
        line: Json | None = None
        match kind:
            case "message.part.updated":
                line = self._part(part)
            case "session.error":
                line = {"type": "error", "error": get_path(properties, "error")}
            case "session.status":
                self._note_status(get_path(properties, "status", "type"))
            case "session.idle":
                self._note_status("idle")
        return None if line is None else {"timestamp": at_ms, "sessionID": self.session, **line}

    def _note_status(self, status: object) -> None:
        """The turn is over when the conversation is idle again."""
        self._has_begun = self._has_begun or status in ("busy", "retry")
        self.is_over = self._has_begun and status == "idle"

    def _part(self, part: object) -> Json | None:
        kind, name = get_path(part, "type"), str(get_path(part, "id"))
        if name in self._printed or not _is_whole(kind, part):
            return None
        self._printed.add(name)
        return {"type": _PARTS.get(str(kind), "tool_use" if kind == "tool" else str(kind)), "part": part}


def _is_whole(kind: object, part: object) -> bool:
    match kind:
        case "tool":
            return get_path(part, "state", "status") in _OVER
        case "text" | "reasoning":
            return get_path(part, "time", "end") is not None
    return kind in _PARTS
