"""Format a record of the audit log for `mam logs`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Line = dict[str, Any]


def format_line(line: Line) -> str:
    """Time, event, details and origin."""
    event = str(line.get("event", "?"))
    parts = [f"{line.get('timestamp', '?')}  {event:<14}", _what(event, line), *_remarks(line)]
    return "  ".join(part for part in parts if part).rstrip()


def _what(event: str, line: Line) -> str:
    if event == "status_changed":
        return f"{line.get('from')} -> {line.get('to')}"
    if event in ("published", "received"):
        payload = line.get("payload")
        return _payload(payload) if isinstance(payload, dict) else ""
    if event in ("reserved", "imported"):
        first, last = line.get("seq"), line.get("upto")
        return f"#{first}" if first == last else f"#{first} to #{last}"
    if event == "adopted":
        return f"changed by another program: {', '.join(map(str, line.get('fields') or []))}"
    if event == "edited":
        return ", ".join(map(str, line.get("after") or {}))
    if event in ("asked", "answered", "withdrawn"):
        return _question(line)
    if event == "notified":
        return f"{line.get('notice')} to {line.get('to')}: {line.get('outcome')}"
    if event == "decided":
        facts = [str(line[name]) for name in ("answer", "tool", "what") if line.get(name)]
        return f"{' '.join(facts)} ({line.get('rule')})"
    if event == "migrated":
        return f"{line.get('status', '')}, from another registry"
    if event == "registered":
        origin = f" (again: {line['retry_of']})" if line.get("retry_of") else ""
        origin += f" (continues {line['continues']})" if line.get("continues") else ""
        return f"{line.get('status', '')}{origin}"
    return ""


def _question(line: Line) -> str:
    facts = [str(line[name]) for name in ("kind", "tool", "answer") if line.get(name)]
    decided = f"by the {line['decided']}" if line.get("decided") in ("rule", "deadline") else ""
    return " ".join(part for part in (f"question {line.get('question')}", *facts, decided) if part)


def _payload(payload: Line) -> str:
    name, detail = payload.get("event"), payload.get("detail")
    said = f": {detail}" if detail and detail != name else ""
    return f"#{payload.get('seq')} {name}{said}"


def _remarks(line: Line) -> list[str]:
    remarks = []
    if line.get("attempt"):
        remarks.append(f"attempt {line['attempt']}")
    if line.get("by"):
        remarks.append(f"by {line['by']}")
    if line.get("owner"):
        remarks.append(f"held by {line['owner']}")
    if line.get("losses"):
        remarks.append(f"the lease expired (loss {line['losses']})")
    if line.get("verb"):
        remarks.append(f"by {line['verb']}")
    if line.get("unfenced"):
        remarks.append("unfenced")
    remarks.extend(f"({line[name]})" for name in ("reason", "why") if line.get(name))
    return remarks
