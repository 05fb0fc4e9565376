"""What the tests of adapters and readers know about each coding agent, one row for each.

A new agent needs a row here and the recordings of `SCENES`. `test_agent_table.py` reports both; the other tests run for
an agent as soon as it has them.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mam.agent_table import CODING_AGENTS
from tests.work.replay import KEPT, recorded

if TYPE_CHECKING:
    from collections.abc import Callable

SCENES = ("text", "write", "denied", "limit", "overload", "logged_out", "unpaid", "declined", "gone", "cut")
"""The names of the recordings that every agent has; `tests/real_agents/record.py` says how they are made."""


@dataclass(frozen=True)
class AgentFacts:
    permissions: dict[str, str]
    """What each permission of mam becomes, as a part of the command line or of a variable."""
    option: str
    """An option that mam always passes."""
    limited: Callable[[float], dict[str, object]]
    """The recording of a usage limit that ends in so many seconds."""
    empty_step: bytes
    """Output of a step in which the agent does nothing."""
    answer: bytes
    """Output with an answer of the model."""
    unknown_session: str
    """The id of a session that does not exist, in the form of this agent's ids."""
    answer_cost: float
    """What one answer of the scripted model costs in US dollars."""
    prints_cost: bool = True
    prints_denials: bool = True
    prints_changes: bool = True


def _limited_claude(seconds: float) -> dict[str, object]:
    scene = recorded("claude-code-plan_limit")
    event = next(line for line in str(scene["out"]).splitlines() if "rate_limit_event" in line)
    stamp = str(json.loads(event)["rate_limit_info"]["resetsAt"])
    return {**scene, "out": str(scene["out"]).replace(stamp, str(round(time.time() + seconds)))}


def _limited_codex(seconds: float) -> dict[str, object]:
    scene = recorded("codex-limit")
    failed = {"type": "turn.failed", "error": {"message": _limit_message(seconds)}}
    lines = [line for line in str(scene["out"]).splitlines() if '"error"' not in line]
    return {**scene, "out": "\n".join([*lines, json.dumps(failed)]) + "\n"}


def _limited_opencode(seconds: float) -> dict[str, object]:
    scene = recorded("opencode-limit")
    error = next(line for line in str(scene["err"]).splitlines() if "stream error" in line)
    log = re.sub(r"AI_APICallError: [^\"]*", f"AI_APICallError: {_limit_message(seconds)}", error)
    return {**scene, "err": f"{log}\n", "stays": True, "code": 0}


def _limit_message(seconds: float) -> str:
    return f"The usage limit has been reached. Please try again in {seconds:g}s."


def opencode_step(reason: str, output_tokens: int) -> bytes:
    part = {"reason": reason, "tokens": {"input": 0, "output": output_tokens, "cache": {"read": 0}}, "cost": 0}
    lines = ({"type": "step_start", "sessionID": "ses_1", "part": {}}, {"type": "step_finish", "part": part})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


AGENT_FACTS = {
    "claude-code": AgentFacts(
        permissions={"ask": "default", "edit": "acceptEdits", "full": "bypassPermissions"},
        option="--output-format",
        limited=_limited_claude,
        empty_step=b'{"type":"assistant","message":{"content":[]}}\n',
        answer=b'{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}\n',
        unknown_session="de0e4160-59be-4507-817d-ee7617d285a1",
        answer_cost=0.0006333,
    ),
    "codex": AgentFacts(
        permissions={"ask": "read-only", "edit": "workspace-write", "full": "danger-full-access"},
        option="--json",
        limited=_limited_codex,
        empty_step=b'{"type":"error","message":"stream error: no such event; retrying 1/100 in 2s"}\n',
        answer=b'{"type":"item.completed","item":{"type":"agent_message","text":"x"}}\n',
        unknown_session="01a1e28e-e5bd-7cc3-bba0-ad5c221fe281",
        answer_cost=(100 * 1.25 + 11 * 0.125 + 22 * 10) / 1e6,
        prints_cost=False,
        prints_denials=False,
        prints_changes=False,
    ),
    "opencode": AgentFacts(
        permissions={
            "ask": '"edit": "ask"',
            "edit": '"edit": "allow", "bash": {"*": "ask"',
            "full": '"*": "allow", "b',
        },
        option="--format",
        limited=_limited_opencode,
        empty_step=opencode_step("unknown", 0),
        answer=b'{"type":"text","part":{"text":"x"}}\n',
        unknown_session="ses_e1d451d38ffe6Hi8otPDUP09Q7",
        answer_cost=0.00063,
    ),
}


def missing_recordings(agent: str) -> list[str]:
    names = [f"{agent}.help.json", *(f"{agent}-{scene}{end}" for scene in SCENES for end in (".out", ".err"))]
    return [name for name in names if not (KEPT / name).exists()]


TESTED = [name for name in CODING_AGENTS if name in AGENT_FACTS and not missing_recordings(name)]
"""The agents for which the tests have all that they need."""


def agent_of(recording: str) -> str:
    return max((name for name in TESTED if recording.startswith(f"{name}-")), key=len)


RECORDINGS = sorted(path.stem for path in KEPT.glob("*.out") if any(path.stem.startswith(f"{a}-") for a in TESTED))
