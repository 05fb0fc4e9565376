"""The inspector of the protocol's authors against stdio and HTTP, on three stores. It starts anew for each call, and on
stdio the server with it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.mcp.world import TRANSPORTS, Address, World, server_of
from tests.needs import need
from tests.real_agents.install import cache, installed

if TYPE_CHECKING:
    from mcp import StdioServerParameters

LONGEST = 60.0


@pytest.fixture(scope="module")
def inspector() -> str:
    need("npm")
    folder = installed(Path(__file__).with_name("package.json"), cache())
    return str(folder / "node_modules/.bin/mcp-inspector")


def _inspect(inspector: str, server: StdioServerParameters | Address, world: World, *words: str) -> Any:
    """What it prints. It exits with an error for a result that does not follow the protocol or the schemas."""
    env = {**world.mam.env, "MAM_STORE": world.address}
    if isinstance(server, Address):
        target = [server.url, "--transport", "http", "--header", f"Authorization: {server.headers['authorization']}"]
    else:
        target = [server.command, *server.args]
    argv = [inspector, "--cli", *target, *words]
    ran = subprocess.run(argv, cwd=world.mam.here, env=env, capture_output=True, timeout=LONGEST)
    assert ran.returncode == 0, (words, ran.stderr.decode(), ran.stdout.decode())
    return json.loads(ran.stdout)


def _call(inspector: str, server: Any, world: World, tool: str, **arguments: str) -> Any:
    pairs = [f"{name}={value}" for name, value in arguments.items()]
    words = ("--method", "tools/call", "--tool-name", tool, "--tool-arg", *pairs)
    result = _inspect(inspector, server, world, *words)
    assert not result.get("isError"), result
    return result["structuredContent"]


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_inspector_uses_tools_resources_and_prompts(world: World, transport: str, inspector: str) -> None:
    with server_of(world, transport) as server:
        tools = _inspect(inspector, server, world, "--method", "tools/list", "--strict")["tools"]
        job = _call(inspector, server, world, "submit", prompt="p", agent="codex")["job_id"]
        claim = _call(inspector, server, world, "claim", label="codex")
        _call(inspector, server, world, "report", handle=claim["handle"], event="complete", text="all of it")
        waited = _call(inspector, server, world, "wait", ids=json.dumps([job]))
        record = _inspect(inspector, server, world, "--method", "resources/read", "--uri", f"mam://jobs/{job}")
        triage = _inspect(inspector, server, world, "--method", "prompts/get", "--prompt-name", "triage")

    assert [tool["name"] for tool in tools][:7] == ["submit", "wait", "show", "list", "result", "cancel", "ask"]
    assert waited["news"][0]["result"]["text"] == "all of it"
    assert json.loads(record["contents"][0]["text"])["status"] == "completed"
    assert "There are none." in triage["messages"][0]["content"]["text"]
