"""The smallest adapter for an agent that speaks the Agent Client Protocol. It shows that the port `Asker` is enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from mam.jobs.question import PERMISSION, Draft
from mam.work.asking.finding import find_asker


class Driver:
    def __init__(self, agent: list[str]) -> None:
        self._process = subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._next = 0
        self.refused = ""
        """The message of the last refusal, which the protocol cannot carry."""

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        self._send(id=self._next, method=method, params=params)
        while True:
            assert self._process.stdout is not None
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._next and "result" in message:
                result: dict[str, Any] = message["result"]
                return result
            if message.get("method") == "session/request_permission":
                self._send(id=message["id"], result={"outcome": self._decide(**message["params"])})

    def _decide(self, toolCall: dict[str, Any], options: list[dict[str, str]], **_more: Any) -> dict[str, str]:
        asker = find_asker(os.environ)
        assert asker is not None
        text = f"It wants to {toolCall['kind']}: {toolCall['title']}"
        decision = asker.decide(Draft(kind=PERMISSION, text=text, tool=toolCall["kind"], input=toolCall["rawInput"]))
        if decision.is_undecided:
            return {"outcome": "cancelled"}
        kind = "allow_once" if decision.is_allowed else "reject_once"
        self.refused = "" if decision.is_allowed else decision.message
        return {"outcome": "selected", "optionId": next(one["optionId"] for one in options if one["kind"] == kind)}

    def _send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


def main() -> None:
    driver, prompt = Driver([sys.executable, sys.argv[1]]), sys.argv[2]
    driver.request("initialize", protocolVersion=1, clientCapabilities={})
    session = driver.request("session/new", cwd=os.getcwd(), mcpServers=[])["sessionId"]
    while prompt:
        driver.refused = ""
        end = driver.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": prompt}])
        print(end["stopReason"], driver.refused, flush=True)
        prompt = driver.refused


if __name__ == "__main__":
    main()
