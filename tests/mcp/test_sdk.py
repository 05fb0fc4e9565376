"""The client of the official SDK against stdio and HTTP, on three stores, with and without the handshake."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from mam import questions
from mam.jobs.question import Draft
from tests.mcp.world import TRANSPORTS, Address, World, server_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


LONGEST = 60.0


@asynccontextmanager
async def _client(server: Any, **options: Any) -> AsyncIterator[Client]:
    if not isinstance(server, Address):
        async with Client(server, read_timeout_seconds=LONGEST, **options) as client:
            yield client
        return
    async with httpx2.AsyncClient(headers=server.headers, timeout=LONGEST, trust_env=False) as http:
        transport = streamable_http_client(server.url, http_client=http)
        async with Client(transport, read_timeout_seconds=LONGEST, **options) as client:
            yield client


async def _call(client: Client, tool: str, **arguments: Any) -> Any:
    """The SDK checks the structured content against the output schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_client_of_the_sdk_uses_every_tool(world: World, transport: str, mode: str) -> None:
    asked: list[str] = []

    async def answer(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "mysql"})

    async def use(server: Any) -> None:
        async with _client(server, mode=mode, elicitation_callback=answer) as client:
            assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
            tools = (await client.list_tools()).tools
            names = ["submit", "wait", "show", "list", "result", "cancel", "ask", "claim", "report"]
            assert [tool.name for tool in tools] == names
            job = (await _call(client, "submit", prompt="p", agent="codex", key="k"))["job_id"]
            claim = await _call(client, "claim", label="codex")
            assert claim["job_id"] == job
            draft = Draft(kind="question", text="Which?", choices=("sqlite", "mysql"))
            questions.ask(world.registry, job, draft, attempt=1)
            waited = await _call(client, "wait", ids=[job], seconds=0)
            assert waited["open"] == [job]
            await _call(client, "report", handle=claim["handle"], event="progress", text="half")
            await _call(client, "report", handle=claim["handle"], event="complete", text="all of it")
            ended = await _call(client, "wait", ids=[job], cursor=waited["cursor"])
            assert ended["news"][0]["result"]["text"] == "all of it"
            assert (await _call(client, "show", job=job))["status"] == "completed"
            assert (await _call(client, "result", job=job))["result"]["text"] == "all of it"
            other = (await _call(client, "submit", prompt="q", agent="codex"))["job_id"]
            assert (await _call(client, "cancel", job=other))["status"] == "cancelled"
            assert len((await _call(client, "list"))["jobs"]) == 2
            assert (await client.call_tool("result", {"job": "nope"})).is_error
            record = await client.read_resource(f"mam://jobs/{job}")
            assert job in record.model_dump_json()
            assert len((await client.list_resource_templates()).resource_templates) == 3
            assert len((await client.list_prompts()).prompts) == 2

    with server_of(world, transport) as server:
        anyio.run(use, server)
    found = world.registry.get(world.registry.store.ids_with_prefix("", 1)[0])
    assert found is not None
    if mode == "auto" or transport == "stdio":
        assert asked
        assert "Which?" in asked[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_wait_ends_when_the_job_does(world: World, transport: str) -> None:
    async def use(server: Any) -> None:
        async with _client(server) as client:
            job = (await _call(client, "submit", prompt="p", agent="codex"))["job_id"]
            found: list[Any] = []

            async def wait() -> None:
                found.append(await _call(client, "wait", ids=[job]))

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                async with client.listen(resource_subscriptions=[f"mam://jobs/{job}"]) as changes:
                    await anyio.to_thread.run_sync(lambda: world.registry.complete(job, result="done"))
                    with anyio.fail_after(LONGEST):
                        async for _change in changes:
                            break
            assert found[0]["news"][0]["result"]["text"] == "done"

    with server_of(world, transport) as server:
        anyio.run(use, server)
