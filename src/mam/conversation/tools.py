"""What agents' tools do, in the same words for every agent."""

from __future__ import annotations

import json
import shlex

from mam.work.reports.report import get_list, get_path

_TOOLS = {
    "bash": ("ran", "command"), "shell": ("ran", "command"), "powershell": ("ran", "command"),
    "read": ("read", "file_path"), "view": ("read", "file_path"), "notebookread": ("read", "notebook_path"),
    "edit": ("edit", "file_path"), "multiedit": ("edit", "file_path"), "notebookedit": ("edit", "notebook_path"),
    "write": ("write", "file_path"), "patch": ("edit", "file_path"),
    "glob": ("search", "pattern"), "grep": ("search", "pattern"), "list": ("read", "path"), "ls": ("read", "path"),
    "websearch": ("search", "query"), "webfetch": ("fetch", "url"),
    "task": ("agent", "description"), "agent": ("agent", "description"), "skill": ("skill", "skill"),
}  # fmt: skip
_QUESTIONS = ("askuserquestion", "question", "request_user_input")
_SPELLINGS = {"file_path": "filePath"}
TARGET_LIMIT = 4000


def describe_tool(name: object, given: object) -> tuple[str, str]:
    """A verb, and what the tool was used on. An unknown tool keeps its name, and its input is shown as JSON."""
    tool = str(name).removeprefix("mcp__").replace("__", ".")
    if tool.lower() in _QUESTIONS:
        return "asked", first_question(given)[0]
    verb, field = _TOOLS.get(tool.lower(), (tool, ""))
    target = get_path(given, field) or get_path(given, _SPELLINGS.get(field, field)) if field else None
    if isinstance(target, str):
        return verb, target[:TARGET_LIMIT]
    return verb, json.dumps(given, ensure_ascii=False)[:TARGET_LIMIT] if given else ""


def unwrap_shell(command: object) -> str:
    """The command in `bash -lc 'command'`, which Codex prints."""
    text = command if isinstance(command, str) else ""
    try:
        words = shlex.split(text) if len(text) <= TARGET_LIMIT else []
    except ValueError:
        words = []
    is_wrapped = len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-lc", "-c")
    return words[2] if is_wrapped else text[:TARGET_LIMIT]


def text_of(content: object) -> str:
    """The text of a result, which is a text or a list of blocks. Blocks of other kinds are named."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(get_path(block, "text") or f"[{get_path(block, 'type')}]") for block in blocks)


def count_patch(lines: object) -> tuple[int, int]:
    """Added and removed lines of a patch without file headers."""
    texts = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return sum(line[:1] == "+" for line in texts), sum(line[:1] == "-" for line in texts)


def patch_lines(diff: object) -> list[object]:
    """The lines of a unified diff from its first hunk on."""
    lines = diff.split("\n") if isinstance(diff, str) else []
    first = next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return [*lines[first:]]


def line_count(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def first_question(given: object) -> tuple[str, tuple[str, ...]]:
    """The first question of a tool that asks its user, and the choices."""
    question = next(iter(get_list(given, "questions")), given)
    choices = tuple(str(get_path(option, "label") or option) for option in get_list(question, "options"))
    return str(get_path(question, "question") or ""), choices
