"""Inside a job that a worker runs, the tools use the door of the worker: no store, and only the job's children."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.command import Mam

STEPS = """
import json, os, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.cli.command import Mam
from tests.mcp.client import mcp

mam = Mam(Path.cwd(), Path(os.environ["HOME"]))
mam.env = dict(os.environ)
found = {{}}
with mcp(mam, inner={inner!r}) as client:
    child = client.call("submit", prompt="p", agent="codex", key="k")["job_id"]
    found["child"] = child
    found["other"] = client.fails("show", job={other!r})
    found["shell"] = client.fails("submit", prompt="p", agent="shell")
    found["self"] = client.fails("cancel", job=os.environ["MAM_JOB_ID"])
    found["list"] = [job["job_id"] for job in client.call("list")["jobs"]]
    found["why"] = client.call("show", job=child)["why"]
    number = client.request("tools/call", {{"name": "wait", "arguments": {{"ids": [child]}}}})
    Path("waits").write_text(child)
    found["waited"] = client.answer_to(number)["result"]["structuredContent"]["news"][0]["result"]["text"]
    later = client.call("submit", prompt="q", agent="codex")["job_id"]
    found["cancelled"] = client.call("cancel", job=later)["status"]
    asked = {{"question": "Which?", "choices": ["a", "b"]}}
    number = client.request("tools/call", {{"name": "ask", "arguments": asked}})
    found["answer"] = client.answer_to(number)["result"]["structuredContent"]["answer"]
Path("found.json").write_text(json.dumps(found))
"""


@pytest.mark.parametrize("inner", ["", "MAM_JOB_ID MAM_ATTEMPT MAM_CLAIM MAM_SOCKET"])
def test_an_agent_delegates_at_the_door(mam: Mam, inner: str) -> None:
    """The store is away from the working directory, as one that needs a password is for the agent."""
    from tests.waiting import await_that

    store = str(mam.home / "jobs")
    mam.env["MAM_STORE"] = store
    other = mam("register", "other", "--agent", "codex", "-s", "elsewhere").line
    root = str(Path(__file__).parents[2])
    script = mam.here / "steps.py"
    script.write_text(STEPS.format(root=root, inner=f"{inner} MAM_STORE".strip(), other=other), "utf-8")
    job = mam("register", f"{sys.executable} {script}", "--agent", "shell").line
    worker = mam.start("worker", "--agent-session", "shell")
    try:
        await_that(lambda: (mam.here / "waits").exists() or mam.record(job)["status"] == "error", longest=60)
        child = (mam.here / "waits").read_text("utf-8")
        mam("complete", child, "--result", "it is done")
        await_that(lambda: mam("questions", "--json").json or mam.record(job)["status"] == "error", longest=60)
        mam("answer", f"{job}.1", "b")
        mam("wait", job, "--timeout", "60")
        print(mam("output", job).out, mam.record(job))
        found = json.loads((mam.here / "found.json").read_text("utf-8"))
    finally:
        worker.terminate()
        worker.communicate()

    assert found["waited"] == "it is done"
    assert (found["cancelled"], found["answer"]) == ("cancelled", "b")
    assert found["list"] == [child]
    assert "'codex'" in found["why"]
    assert "knows one job and its children" in found["other"]
    assert "shell" in found["shell"]
    assert "cannot cancel itself" in found["self"]
    record = mam.record(child)
    assert (record["parent_id"], record["key"]) == (job, f"{job}/k")
    assert mam.record(job)["status"] == "completed"
