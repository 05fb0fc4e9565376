"""What the tests of adapters and readers know about each coding agent, one row for each.

A new agent needs a row here and its recordings. `test_agent_table.py` reports both; the other tests run for an agent as
soon as it has them. A test of what some agents cannot do takes one of the lists at the end of this file.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mam.agent_table import CODING_AGENTS
from tests.work.replay import KEPT, recorded

if TYPE_CHECKING:
    from collections.abc import Callable

SCENES = ("text", "write", "denied", "limit", "overload", "logged_out", "unpaid", "declined", "gone", "cut")
"""The names of the recordings; `tests/real_agents/record.py` says how they are made."""


@dataclass(frozen=True)
class AgentFacts:
    permissions: dict[str, str]
    """What each permission of mam becomes, as a part of the command line or of a variable; empty if it has none."""
    option: str
    """An option that mam always passes and the user may not."""
    limited: Callable[[float], dict[str, object]]
    """The recording of a usage limit that ends in so many seconds."""
    empty_step: bytes
    """Output of a step in which the agent does nothing."""
    answer: bytes
    """Output with an answer of the model."""
    unknown_session: str
    """The id of a session that does not exist, in the form of this agent's ids; empty if it cannot resume one."""
    answer_cost: float
    """What one answer of the scripted model costs in US dollars."""
    prints_cost: bool = True
    prints_denials: bool = True
    prints_changes: bool = True
    reads_stdin: bool = True
    """Whether it reads the brief from stdin; otherwise the brief is its last argument."""
    takes_model: bool = True
    """Whether it has the option `--model`."""
    tokens: dict[str, int] = field(default_factory=lambda: {"input": 200, "cached": 22, "output": 44})
    """What the turn of the recording `write` took."""

    @property
    def has_permissions(self) -> bool:
        return bool(self.permissions)

    @property
    def resumes(self) -> bool:
        """Whether it names its session, so that the next attempt can resume it."""
        return bool(self.unknown_session)

    def brief_in(self, call: dict[str, object]) -> str:
        """What the agent got as its brief; `call` is of a `Replay`."""
        argv = call["argv"]
        assert isinstance(argv, list)
        return str(call["stdin"] if self.reads_stdin else argv[-1])


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


def scenes_of(agent: str) -> list[str]:
    """Without permissions, nothing is denied; without sessions, none is gone."""
    facts = AGENT_FACTS.get(agent)
    cannot = {"denied": facts and not facts.has_permissions, "gone": facts and not facts.resumes}
    return [scene for scene in SCENES if not cannot.get(scene)]


def missing_recordings(agent: str) -> list[str]:
    names = [f"{agent}.help.json", *(f"{agent}-{scene}{end}" for scene in scenes_of(agent) for end in (".out", ".err"))]
    return [name for name in names if not (KEPT / name).exists()]


TESTED = [name for name in CODING_AGENTS if name in AGENT_FACTS and not missing_recordings(name)]
"""The agents for which the tests have all that they need."""
PERMITTED = [name for name in TESTED if AGENT_FACTS[name].has_permissions]
RESUMING = [name for name in TESTED if AGENT_FACTS[name].resumes]
WITH_MODELS = [name for name in TESTED if AGENT_FACTS[name].takes_model]


def agent_of(recording: str) -> str:
    return max((name for name in TESTED if recording.startswith(f"{name}-")), key=len)


RECORDINGS = sorted(path.stem for path in KEPT.glob("*.out") if any(path.stem.startswith(f"{a}-") for a in TESTED))
