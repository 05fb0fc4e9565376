"""What scripted agents print, in the formats of the real ones."""

from __future__ import annotations

import json
from typing import Any


class Claude:
    """Lines of Claude Code's `--output-format stream-json`."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = [
            {"type": "system", "subtype": "init", "session_id": "5b0d", "model": "claude-sonnet-4-5",
             "claude_code_version": "2.1.325"}]  # fmt: skip
        self._tools = 0

    def say(self, text: str) -> Claude:
        return self._assistant({"type": "text", "text": text})

    def think(self, text: str) -> Claude:
        return self._assistant({"type": "thinking", "thinking": text})

    def plan(self, *steps: tuple[str, str]) -> Claude:
        todos = [{"content": text, "status": state} for state, text in steps]
        return self._assistant({"type": "tool_use", "id": "plan", "name": "TodoWrite", "input": {"todos": todos}})

    def ran(self, command: str, output: str, code: int = 0) -> Claude:
        self._use("Bash", {"command": command})
        text = output if not code else f"Exit code {code}\n{output}"
        return self._result(text, is_error=bool(code))

    def read(self, path: str, lines: int) -> Claude:
        self._use("Read", {"file_path": path})
        return self._result("\n".join(f"{at}\t…" for at in range(lines)))

    def edit(self, path: str, *lines: str) -> Claude:
        self._use("Edit", {"file_path": path})
        return self._result("updated", details={"structuredPatch": [{"lines": list(lines)}]})

    def write(self, path: str, content: str) -> Claude:
        self._use("Write", {"file_path": path})
        return self._result("created", details={"type": "create", "content": content})

    def runs(self, command: str) -> Claude:
        """A tool without a result yet."""
        self._use("Bash", {"command": command})
        return self

    def end(self, usd: float, tokens: int) -> Claude:
        self._lines.append({
            "type": "result", "subtype": "success", "is_error": False, "total_cost_usd": usd,
            "usage": {"input_tokens": tokens, "output_tokens": tokens // 20, "cache_read_input_tokens": tokens * 3},
        })  # fmt: skip
        return self

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self._lines)

    def _assistant(self, block: dict[str, Any]) -> Claude:
        self._lines.append({"type": "assistant", "message": {"content": [block]}})
        return self

    def _use(self, name: str, given: dict[str, Any]) -> None:
        self._tools += 1
        self._assistant({"type": "tool_use", "id": f"t{self._tools}", "name": name, "input": given})

    def _result(self, text: str, *, is_error: bool = False, details: dict[str, Any] | None = None) -> Claude:
        block = {"type": "tool_result", "tool_use_id": f"t{self._tools}", "content": text, "is_error": is_error}
        self._lines.append({"type": "user", "message": {"content": [block]}, "tool_use_result": details})
        return self


def codex(*texts: str) -> bytes:
    """Messages of Codex's `exec --json`."""
    items = [{"type": "item.completed", "item": {"id": f"i{at}", "type": "agent_message", "text": text}}
             for at, text in enumerate(texts)]  # fmt: skip
    return b"".join(
        json.dumps(line).encode() + b"\n" for line in [{"type": "thread.started", "thread_id": "t"}, *items]
    )
