"""`python -m mam.work.drivers.claude_hook`: a hook of a live session of Claude Code, which asks and prints the answer.

Claude Code shows its dialog meanwhile, and the first answer wins. Without an answer the hook prints nothing, and the
dialog decides.
"""

from __future__ import annotations

import os
import sys

from mam.errors import MamError
from mam.util.encoding import to_bytes, write_all
from mam.util.strict_json import safe_json
from mam.work.asking.finding import find_asker
from mam.work.asking.port import WITHDRAWN
from mam.work.drivers.claude_requests import (
    QUESTION_TOOL,
    permission_of,
    permission_output,
    questions_of,
    questions_output,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Json
    from mam.work.asking.port import Asker

INPUT_LIMIT = 64 << 20


def answer(hook: Json, asker: Asker, is_over: Callable[[], bool]) -> Json | None:
    """What the hook prints; None if no one needs an answer any more."""
    match hook.get("hook_event_name"), hook.get("tool_name"):
        case "PermissionRequest", tool if tool != QUESTION_TOOL:
            decision = asker.decide(permission_of(hook), is_over)
            return None if decision.outcome == WITHDRAWN else permission_output(decision)
        case "PreToolUse", "AskUserQuestion":
            decisions = [asker.decide(draft, is_over) for draft in questions_of(hook)]
            is_withdrawn = any(one.outcome == WITHDRAWN for one in decisions)
            return None if is_withdrawn or not decisions else questions_output(hook, decisions)
    return None


def main() -> None:
    parent = os.getppid()
    hook = safe_json(sys.stdin.buffer.read(INPUT_LIMIT))
    asker = find_asker(os.environ)
    if asker is None or not isinstance(hook, dict):
        return
    printed = answer(hook, asker, lambda: os.getppid() != parent)
    if printed is not None:
        write_all(1, to_bytes(printed) + b"\n")


if __name__ == "__main__":
    try:
        main()
    except (MamError, OSError, ValueError) as error:
        print(f"mam: {error}", file=sys.stderr)
