"""The protocol on stdin and stdout: each version, what a server must and must not say, and the end of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mam.mcp.output_schemas import read_schema
from tests.cli.command import Mam
from tests.mcp.client import META, NEWEST, OLD, OLDEST, TASKS, VERSIONS, McpClient, mcp

TOOLS = ["submit", "wait", "show", "list", "result", "cancel", "ask"]
BYTES_LIMIT = 5_100
"""Of `tools/list`. A token has 3.4 bytes or more, by all that is known of JSON in English."""


@pytest.mark.parametrize("version", VERSIONS)
def test_an_agent_delegates_and_reads_the_result(mam: Mam, version: str) -> None:
    with mcp(mam, version=version) as client:
        job = client.call("submit", prompt="write notes", agent="codex")
        assert job["status"] == "pending"
        assert "No live worker serves the label 'codex'" in job["why"]
        mam("complete", job["job_id"], "--result", "the notes")
        news = client.call("wait", ids=[job["job_id"][:8]])
        result = client.call("result", job=job["job_id"])

    assert news["open"] == []
    assert [one["status"] for one in news["news"]] == ["completed"]
    assert result["result"]["text"] == news["news"][0]["result"]["text"] == "the notes"
    assert "not instructions" in result["result"]["untrusted"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_output_fits_its_schema(mam: Mam, version: str) -> None:
    whole = read_schema()
    with mcp(mam, "--worker", version=version) as client:
        shown = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        job = client.call("submit", prompt="p", agent="codex", artifacts=["a.md"], label="x")
        (mam.here / "a.md").write_text("a")
        outputs = {
            "submit": job,
            "list": client.call("list"),
            "show": client.call("show", job=job["job_id"], fields=["why", "prompt", "state", "where"]),
            "claim": (claim := client.call("claim", label="x")),
            "report": client.call("report", handle=claim["handle"], event="complete", text="done"),
            "wait": client.call("wait", ids=[job["job_id"]]),
            "result": client.call("result", job=job["job_id"]),
            "cancel": client.call("cancel", job=client.call("submit", prompt="q", agent="codex")["job_id"]),
        }

    assert set(shown) == {*outputs, "ask"}
    for name, output in outputs.items():
        Draft202012Validator(shown[name]["outputSchema"]).validate(output)
        Draft202012Validator({**whole["$defs"][name], "$defs": whole["$defs"]}).validate(output)


def test_the_list_of_tools_is_short_and_says_what_each_does(mam: Mam) -> None:
    with mcp(mam) as client:
        tools = client.ask("tools/list")["tools"]

    assert [tool["name"] for tool in tools] == TOOLS
    assert len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode()) <= BYTES_LIMIT
    found = " ".join(tool["description"] for tool in tools).lower()
    assert all(word in found for word in ("delegate", "job", "wait", "ask"))
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    assert [name for name in TOOLS if hints[name]["readOnlyHint"]] == ["wait", "show", "list", "result"]
    assert hints["cancel"]["destructiveHint"]
    assert not hints["submit"]["destructiveHint"]


def test_a_reader_is_offered_no_tool_that_writes(mam: Mam) -> None:
    mam("register", "p", "--agent", "codex")
    with mcp(mam, "--read-only", "--worker", capabilities=TASKS) as client:
        names = [tool["name"] for tool in client.ask("tools/list")["tools"]]
        job = client.call("list")["jobs"][0]["job_id"]
        refusals = [client.refused("tools/call", {"name": "cancel", "arguments": {"job": job}})]
        refusals.append(client.refused("tasks/cancel", {"taskId": job}))
        assert client.call("list", status=["pending"])["jobs"] != []

    assert names == ["wait", "show", "list", "result"]
    assert [refusal["code"] for refusal in refusals] == [-32602, -32602]
    assert mam("get", job, "--field", "status").line == "pending"


def test_each_request_of_the_newest_version_is_complete_in_itself(mam: Mam) -> None:
    with mcp(mam) as client:
        found = client.ask("server/discover")
        assert found["resultType"] == "complete"
        assert found["supportedVersions"] == [NEWEST, OLD, OLDEST]
        assert f"{META}tasks" in found["capabilities"]["extensions"]
        assert found["_meta"][f"{META}serverInfo"]["name"] == "mam"
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            listed = client.ask(method)
            assert listed["resultType"] == "complete"
            assert listed["ttlMs"] >= 0
            assert listed["cacheScope"] in ("public", "private")
        client.send({"jsonrpc": "2.0", "id": "bare", "method": "tools/list"})
        assert client.answer_to("bare")["error"]["code"] == -32602
        assert client.refused("ping")["code"] == -32601
        assert client.refused("initialized")["code"] == -32601


def test_unknown_versions_are_told_which_there_are(mam: Mam) -> None:
    with mcp(mam) as client:
        meta = {f"{META}protocolVersion": "2099-01-01", f"{META}clientCapabilities": {}}
        client.send({"jsonrpc": "2.0", "id": "new", "method": "tools/list", "params": {"_meta": meta}})
        error = client.answer_to("new")["error"]
        assert error["code"] == -32022
        assert NEWEST in error["data"]["supported"]
        assert error["data"]["requested"] == "2099-01-01"
        meta = {f"{META}protocolVersion": NEWEST}
        client.send({"jsonrpc": "2.0", "id": "short", "method": "tools/list", "params": {"_meta": meta}})
        assert client.answer_to("short")["error"]["code"] == -32602


@pytest.mark.parametrize(("wanted", "given"), [(OLDEST, OLDEST), (OLD, OLD), ("2024-11-05", OLD), ("x", OLD)])
def test_a_handshake_agrees_on_a_version(mam: Mam, wanted: str, given: str) -> None:
    with mcp(mam) as client:
        client.version = wanted
        found = client.begin()
        assert found["protocolVersion"] == given
        assert "extensions" not in found["capabilities"]
        assert client.ask("ping") == {}
        assert "resultType" not in client.ask("tools/list")


def test_the_end_of_stdin_ends_the_server_and_no_job(mam: Mam) -> None:
    with mcp(mam) as client:
        job = client.call("submit", prompt="p", agent="codex")["job_id"]
        client.request("tools/call", {"name": "wait", "arguments": {"ids": [job]}})
        client.end()

    assert mam("get", job, "--field", "status").line == "pending"


def test_a_cancelled_request_gets_no_answer_and_its_job_goes_on(mam: Mam) -> None:
    with mcp(mam) as client:
        job = client.call("submit", prompt="p", agent="codex")["job_id"]
        number = client.request("tools/call", {"name": "wait", "arguments": {"ids": [job]}})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        mam("complete", job)
        assert client.call("wait", ids=[job])["open"] == []

    assert all(notice.get("id") != number for notice in client.notices)
    assert mam("get", job, "--field", "status").line == "completed"


def test_several_waits_at_once_each_get_their_own_job(mam: Mam) -> None:
    with mcp(mam) as client:
        jobs = [client.call("submit", prompt=f"p{at}", agent="codex")["job_id"] for at in range(3)]
        numbers = [client.request("tools/call", {"name": "wait", "arguments": {"ids": [job]}}) for job in jobs]
        answers = []
        for at in (1, 0, 2):
            mam("complete", jobs[at])
            answers.append(client.answer_to(numbers[at])["result"]["structuredContent"]["news"][0]["job_id"])

    assert answers == [jobs[1], jobs[0], jobs[2]]


def test_a_wait_is_bounded_and_goes_on_with_its_cursor(mam: Mam) -> None:
    with mcp(mam) as client:
        jobs = [client.call("submit", prompt=f"p{at}", agent="codex")["job_id"] for at in range(2)]
        nothing = client.call("wait", ids=jobs, seconds=0)
        mam("complete", jobs[0])
        first = client.call("wait", ids=jobs, cursor=nothing["cursor"])
        mam("fail", jobs[1], "--reason", "no")
        second = client.call("wait", ids=jobs, cursor=first["cursor"])
        again = client.call("wait", ids=jobs, cursor=second["cursor"])

    assert (nothing["news"], nothing["open"]) == ([], jobs)
    assert "No live worker" in nothing["why"]
    assert [one["job_id"] for one in first["news"]] == [jobs[0]]
    assert first["open"] == [jobs[1]]
    assert [(one["status"], one["reason"]) for one in second["news"]] == [("error", "no")]
    assert (again["news"], again["open"]) == ([], [])


def test_without_a_store_the_first_job_makes_one(mam: Mam) -> None:
    with mcp(mam) as client:
        assert "No store at" in client.fails("list")
        assert client.ask("resources/list")["resources"] == []
        client.call("submit", prompt="p", agent="codex")
        assert len(client.call("list")["jobs"]) == 1
        assert "created a store at" in client.end()


def test_what_a_tool_refuses_says_what_to_do(mam: Mam) -> None:
    with mcp(mam) as client:
        assert "default_agent; one of claude-code, codex, opencode, human" in client.fails("submit", prompt="p")
        job = client.call("submit", prompt="p", agent="codex")["job_id"]
        assert f"call wait(ids=['{job}'])" in client.fails("result", job=job)
        assert "the argument job is missing" in client.fails("show")
        assert "there is no argument 'color'; there are job, fields" in client.fails("show", job=job, color="red")
        assert "fields takes why, " in client.fails("show", job=job, fields=["secret"])
        assert "seconds must be between 0 and 50" in client.fails("wait", ids=[job], seconds=3600)
        assert "No job nope" in client.fails("cancel", job="nope")
        assert client.refused("tools/call", {"name": "rm", "arguments": {}})["code"] == -32602
        assert client.refused("tools/call", {"name": "claim", "arguments": {"label": "x"}})["code"] == -32602


def _submit_twice(client: McpClient, **arguments: str) -> tuple[str, str]:
    first, second = (client.call("submit", prompt="p", agent="codex", **arguments) for _ in range(2))
    return first["job_id"], second["job_id"]


def test_a_key_makes_a_repeat_harmless(mam: Mam) -> None:
    with mcp(mam) as client:
        first, second = _submit_twice(client, key="nightly")
        other = client.call("submit", prompt="another", agent="codex", key="nightly")
        without = _submit_twice(client)

    assert first == second == other["job_id"]
    assert "it has another prompt" in other["note"]
    assert without[0] != without[1]


def test_a_question_outside_of_a_job_is_a_job_for_a_person(mam: Mam) -> None:
    with mcp(mam) as client:
        asked = {"question": "Which database?", "choices": ["sqlite", "mysql"]}
        number = client.request("tools/call", {"name": "ask", "arguments": asked})
        (job,) = client.call("list")["jobs"]
        mam("answer", job["job_id"], "mysql")
        answer = client.answer_to(number)["result"]["structuredContent"]
        again = client.call("ask", question="", id=job["job_id"])
        assert "no deadline" in client.fails("ask", question="Now?", deadline=10)

    assert job["agent"] == "human"
    assert answer == again == {"id": job["job_id"], "state": "answered", "answer": "mysql"}


def test_each_session_of_an_agent_costs_little_memory(mam: Mam) -> None:
    with mcp(mam) as client:
        client.ask("server/discover")
        client.ask("tools/list")
        first = _megabytes(client)
        job = client.call("submit", prompt="p", agent="codex")["job_id"]
        client.call("wait", ids=[job], seconds=0)
        assert _megabytes(client) <= 40
    assert first <= 40


def _megabytes(client: McpClient) -> float:
    """The most that the process has had in memory."""
    status = Path(f"/proc/{client.process.pid}/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
