"""`/mcp`: headers and statuses of the transport, and the rights of a token."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mam import questions
from mam.jobs.question import Draft
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.util.clock import SystemClock
from tests.mcp.client import FORMS, META, NEWEST, OLD, TASKS
from tests.serve.serving import Serving, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]


@pytest.fixture
def served() -> Iterator[Serving]:
    with serving(Registry(MemoryStore(SystemClock()))) as found:
        yield found


class HttpMcp:
    def __init__(self, served: Serving, *scopes: str, capabilities: Json | None = None, **bounds: Any) -> None:
        self.url = f"{served.url}/mcp"
        self.capabilities = capabilities or {}
        token = served.token(*scopes, **bounds)
        self.http = served.browser()
        self.http.headers["authorization"] = f"Bearer {token}"

    def post(self, method: str, params: Json | None = None, **headers: str | None) -> httpx.Response:
        meta = {f"{META}protocolVersion": NEWEST, f"{META}clientCapabilities": self.capabilities}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta}}
        name = (params or {}).get("name") or (params or {}).get("uri") or (params or {}).get("taskId")
        usual = {"mcp_protocol_version": NEWEST, "mcp_method": method, "mcp_name": name, **headers}
        sent = {key.replace("_", "-"): value for key, value in usual.items() if isinstance(value, str)}
        return self.http.post(self.url, json=body, headers=sent)

    def call(self, tool: str, **arguments: Any) -> Json:
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        found: Json = result["structuredContent"]
        return found

    def fails(self, tool: str, **arguments: Any) -> str:
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"] is True, result
        return str(result["content"][0]["text"])

    def result(self, method: str, params: Json | None = None) -> Json:
        answered = self.post(method, params)
        assert answered.status_code == 200, answered.text
        found: Json = answered.json()["result"]
        return found

    def refused(self, method: str, params: Json | None = None, **headers: str | None) -> tuple[int, int]:
        answered = self.post(method, params, **headers)
        return answered.status_code, answered.json()["error"]["code"]

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.result("tools/list")["tools"]]


def test_headers_say_what_the_body_says(served: Serving) -> None:
    client = HttpMcp(served, "read", "submit")
    call = {"name": "list", "arguments": {}}
    encoded = f"=?base64?{base64.b64encode(b'list').decode()}?="
    assert client.post("tools/call", call, mcp_name=encoded).status_code == 200
    assert client.refused("tools/call", call, mcp_name="submit") == (400, -32020)
    assert client.refused("tools/call", call, mcp_name=None) == (400, -32020)
    assert client.refused("tools/call", call, mcp_name="=?base64?%%?=") == (400, -32020)
    assert client.refused("tools/list", mcp_method="tools/call") == (400, -32020)
    assert client.refused("tools/list", mcp_method=None) == (400, -32020)
    assert client.refused("tools/list", mcp_protocol_version=OLD) == (400, -32020)
    assert client.refused("tools/list", mcp_protocol_version=None) == (400, -32020)
    assert client.refused("what/ever") == (404, -32601)
    assert client.refused("tasks/get", {"taskId": "x"}) == (400, -32021)
    assert client.refused("resources/read", {"uri": "mam://jobs/x"}) == (200, -32602)


def test_other_messages_and_methods_are_rejected(served: Serving) -> None:
    client = HttpMcp(served, "read")
    assert client.http.post(client.url, content=b"nonsense").json()["error"]["code"] == -32700
    bad = client.http.post(client.url, json=[1])
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, -32600)
    told = client.http.post(client.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (told.status_code, told.content) == (202, b"")
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert client.http.post(client.url, json=bare, headers={"mcp-protocol-version": NEWEST}).status_code == 200
    assert client.http.post(client.url, json=bare, headers={"mcp-protocol-version": "1"}).status_code == 400
    assert client.http.post(client.url, json=bare).json()["result"]["tools"]
    assert client.http.get(client.url).status_code == 405
    assert client.http.delete(client.url).status_code == 405


def test_without_a_valid_token_there_is_nothing(served: Serving) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    with httpx.Client(timeout=60, trust_env=False) as nobody:
        for headers in ({}, {"authorization": "Bearer mam_wrong"}, {"authorization": "Basic x"}):
            answered = nobody.post(f"{served.url}/mcp", json=body, headers=headers)
            assert answered.status_code == 401
            assert "www-authenticate" in answered.headers
        answered = nobody.post(f"{served.url}/mcp", json=body, headers={"origin": "https://evil.example"})
        assert answered.status_code == 403


def test_the_scopes_of_a_token_are_its_tools(served: Serving) -> None:
    reading = ["wait", "show", "list", "result"]
    assert HttpMcp(served, "read").tools() == reading
    assert HttpMcp(served, "work").tools() == [*reading, "claim", "report"]
    assert HttpMcp(served, "submit").tools() == ["submit", *reading, "cancel", "ask"]


def test_a_token_submits_within_its_bounds_and_sees_its_own_jobs(served: Serving) -> None:
    mine = HttpMcp(served, "submit", agents=["codex"], labels=["codex"])
    other = HttpMcp(served, "submit")
    job = mine.call("submit", prompt="p", agent="codex")["job_id"]
    foreign = other.call("submit", prompt="q", agent="claude-code")["job_id"]

    assert "may not register jobs for the agent" in mine.fails("submit", prompt="p", agent="claude-code")
    assert "may not use the label" in mine.fails("submit", prompt="p", agent="codex", label="gpu")
    assert "shell" in other.fails("submit", prompt="p", agent="shell")
    assert [one["job_id"] for one in mine.call("list")["jobs"]] == [job]
    assert "No job" in mine.fails("show", job=foreign)
    assert "No job" in mine.fails("cancel", job=foreign)
    assert served.registry.get(job).workspace == "fresh"
    assert mine.call("cancel", job=job)["status"] == "cancelled"


def test_a_worker_claims_and_reports_by_its_handle(served: Serving) -> None:
    served.registry.register(prompt="p", agent="codex", label="gpu")
    worker = HttpMcp(served, "work", labels=["gpu"])
    claim = worker.call("claim", label="gpu")
    wrong = claim["handle"][:-1] + ("0" if claim["handle"][-1] != "0" else "1")

    assert "may not use the label" in worker.fails("claim", label="cpu")
    assert "does not hold job" in worker.fails("report", handle=wrong, event="complete", text="x")
    assert worker.call("report", handle=claim["handle"], event="complete", text="done")["status"] == "completed"
    assert served.registry.get(claim["job_id"]).result == "done"


def test_a_question_needs_the_scope_answer(served: Serving) -> None:
    both = {**TASKS, **FORMS}
    submitter = HttpMcp(served, "submit", capabilities=both)
    task = submitter.result("tools/call", {"name": "submit", "arguments": {"prompt": "p", "agent": "codex"}})["taskId"]
    served.registry.pick("codex", owner="me")
    questions.ask(served.registry, task, Draft(kind="question", text="Which?"), attempt=1)
    response = {"taskId": task, "inputResponses": {f"{task}.1": {"action": "accept", "content": {"answer": "b"}}}}
    submitter.result("tasks/update", response)
    before = submitter.result("tasks/get", {"taskId": task})
    answerer = HttpMcp(served, "read", "submit", "answer", capabilities=both)
    asking = answerer.result("tasks/get", {"taskId": task})
    answerer.result("tasks/update", response)

    assert before["status"] == "working"
    assert asking["status"] == "input_required"
    assert served.registry.get(task).questions[0]["answer"] == "b"


def test_a_stream_ends_with_its_token(served: Serving) -> None:
    """What was agreed comes first; the rest is in tests/mcp/test_sdk.py."""
    client = HttpMcp(served, "read")
    job = served.registry.register(prompt="p", agent="codex").job.job_id
    meta = {f"{META}protocolVersion": NEWEST, f"{META}clientCapabilities": {}}
    params = {"notifications": {"resourceSubscriptions": [f"mam://jobs/{job}"]}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
    headers = {"mcp-protocol-version": NEWEST, "mcp-method": "subscriptions/listen"}
    with client.http.stream("POST", client.url, json=body, headers=headers) as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("data: "))
        assert "acknowledged" in next(lines)
        served.registry.cancel(job)
        assert "notifications/resources/updated" in next(lines)
    assert stream.headers["content-type"].startswith("text/event-stream")


def test_a_client_with_a_handshake_is_offered_no_subscription(served: Serving) -> None:
    """The server keeps no session in which it could send anything."""
    info = {"name": "x", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"authorization": f"Bearer {served.token('read')}"}
    answer = httpx.post(f"{served.url}/mcp", json=message, headers=headers, trust_env=False)

    assert answer.json()["result"]["capabilities"]["resources"] == {}
