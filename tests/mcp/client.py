"""A client of `mam mcp` that can say anything: messages as they are, in any version, also wrong ones."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cli.command import Mam

Json = dict[str, Any]
LONGEST = 60.0
META = "io.modelcontextprotocol/"
NEWEST, OLD, OLDEST = "2026-07-28", "2025-11-25", "2025-06-18"
VERSIONS = (NEWEST, OLD, OLDEST)
TASKS: Json = {"extensions": {f"{META}tasks": {}}}
FORMS: Json = {"elicitation": {"form": {}}}


class McpClient:
    """Speaks one version. `call` returns what a tool returns; `ask` what any method returns."""

    def __init__(self, process: subprocess.Popen[bytes], version: str, capabilities: Json) -> None:
        self.process = process
        self.version = version
        self.capabilities = capabilities
        self.notices: list[Json] = []
        self._number = 0
        self._buffer = b""
        if version != NEWEST:
            self.begin()

    def begin(self) -> Json:
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": info}
        answer = self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, **arguments: Any) -> Json:
        """The structured content of a call that succeeds."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        found: Json = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == found
        return found

    def fails(self, tool: str, **arguments: Any) -> str:
        """The message of a call that fails."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"] is True, result
        assert "structuredContent" not in result
        return str(result["content"][0]["text"])

    def ask(self, method: str, params: Json | None = None) -> Json:
        answer = self.answer_to(self.request(method, params))
        assert "error" not in answer, answer
        result: Json = answer["result"]
        return result

    def refused(self, method: str, params: Json | None = None) -> Json:
        answer = self.answer_to(self.request(method, params))
        assert "result" not in answer, answer
        error: Json = answer["error"]
        return error

    def request(self, method: str, params: Json | None = None) -> int:
        self._number += 1
        params = dict(params or {})
        if self.version == NEWEST:
            params["_meta"] = {
                f"{META}protocolVersion": NEWEST,
                f"{META}clientInfo": {"name": "test", "version": "1"},
                f"{META}clientCapabilities": self.capabilities,
            }
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def answer_to(self, number: object) -> Json:
        while (message := self.read()).get("id", "") != number or "method" in message:
            self.notices.append(message)
        return message

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> Json:
        """The next message; the server prints nothing else."""
        assert self.process.stdout is not None
        ends = time.monotonic() + LONGEST
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, ends - time.monotonic()))
            assert ready, "the server says nothing"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, "the server ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Json = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> str:
        """Closes stdin; the server ends with 0 and without a traceback. Returns stderr."""
        _, stderr = self.process.communicate(timeout=LONGEST)
        text = stderr.decode()
        assert self.process.returncode == 0, text
        assert "Traceback" not in text
        return text


@contextmanager
def mcp(
    mam: Mam, *words: str, version: str = NEWEST, capabilities: Json | None = None, inner: str = "", **env: str
) -> Iterator[McpClient]:
    """`inner` are variables that a shell between the test and the server removes."""
    argv = [sys.executable, "-m", "mam", "mcp", *words]
    if inner:
        removing = ["sh", "-c", f'unset {inner}; "$@"; exit $?', "sh", *argv]
        argv = ["sh", "-c", '"$@"; exit $?', "sh", *removing]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=mam.here,
        env={**mam.env, **env},
    )  # fmt: skip
    with process:
        try:
            yield McpClient(process, version, capabilities or {})
            if process.poll() is None:
                process.communicate(timeout=LONGEST)
        finally:
            if process.poll() is None:
                process.kill()
