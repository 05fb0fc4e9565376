"""A server that is killed: what it answered is in the store, and another one goes on from there."""

from __future__ import annotations

from tests.cli.command import Mam
from tests.mcp.client import TASKS, mcp


def test_a_task_outlives_the_server_that_made_it(mam: Mam) -> None:
    with mcp(mam, capabilities=TASKS) as client:
        task = client.ask("tools/call", {"name": "submit", "arguments": {"prompt": "p", "agent": "codex"}})
        assert task["resultType"] == "task"
        client.kill()
    mam("complete", task["taskId"], "--result", "done")
    with mcp(mam, capabilities=TASKS) as client:
        found = client.ask("tasks/get", {"taskId": task["taskId"]})

    assert found["status"] == "completed"
    assert found["result"]["structuredContent"]["result"]["text"] == "done"


def test_a_repeat_after_a_kill_makes_no_second_job(mam: Mam) -> None:
    """A client that got no answer repeats the call with its key."""
    arguments = {"prompt": "p", "agent": "codex", "key": "k"}
    with mcp(mam) as client:
        client.request("tools/call", {"name": "submit", "arguments": arguments})
        client.kill()
    with mcp(mam) as client:
        job = client.call("submit", **arguments)["job_id"]
        assert [one["job_id"] for one in client.call("list")["jobs"]] == [job]


def test_a_claim_outlives_the_server_that_made_it(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex", "-s", "x").line
    with mcp(mam, "--worker") as client:
        handle = client.call("claim", label="x")["handle"]
        client.kill()
    with mcp(mam, "--worker") as client:
        assert client.call("claim", label="x")["job_id"] is None
        client.call("report", handle=handle, event="complete", text="done")

    assert mam("result", job).out == "done"
