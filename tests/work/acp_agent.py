"""A fake agent that speaks the Agent Client Protocol: JSON-RPC 2.0, one object a line on stdin and stdout.

Its turn: it asks the client for permission to run a command, and does what the answer says. If it is refused, it reads
the message that follows as the next prompt and asks for the command that is in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

OPTIONS = [
    {"optionId": "proceed", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "stop", "name": "Reject", "kind": "reject_once"},
]


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    heard: dict[str, Any] = json.loads(line)
    return heard


def update(**fields: Any) -> None:
    send(method="session/update", params={"sessionId": "s", "update": fields})


def turn(prompt: str) -> str:
    command = prompt.strip().splitlines()[-1].removeprefix("run: ")
    call = {"toolCallId": "1", "title": command, "kind": "execute", "rawInput": {"command": command}}
    update(sessionUpdate="tool_call", status="pending", **call)
    send(id=7, method="session/request_permission", params={"sessionId": "s", "toolCall": call, "options": OPTIONS})
    while (answer := hear()).get("id") != 7:
        if answer.get("method") == "session/cancel":
            return "cancelled"
    outcome = answer["result"]["outcome"]
    if outcome["outcome"] == "cancelled":
        return "cancelled"
    if outcome["optionId"] == "proceed":
        subprocess.run(command, shell=True, check=True)
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": f"ran {command}"})
    else:
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "refused"})
    return "end_turn"


def main() -> None:
    while True:
        request = hear()
        match request.get("method"):
            case "initialize":
                send(id=request["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
            case "session/new":
                send(id=request["id"], result={"sessionId": "s"})
            case "session/prompt":
                stop = turn(request["params"]["prompt"][0]["text"])
                send(id=request["id"], result={"stopReason": stop})


if __name__ == "__main__":
    main()
