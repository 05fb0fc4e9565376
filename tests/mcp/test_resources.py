"""Resources and prompts."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cli.command import Mam
from tests.mcp.client import NEWEST, OLD, McpClient, mcp
from tests.needs import need


def _text(client: McpClient, uri: str) -> str:
    contents = client.ask("resources/read", {"uri": uri})["contents"]
    assert [one["uri"] for one in contents] == [uri]
    return str(contents[0]["text"])


def test_record_log_and_diff_of_a_job_are_resources(mam: Mam) -> None:
    need("git")
    for words in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=mam.here, check=True)
    (mam.here / "notes.md").write_text("old\n")
    subprocess.run(["git", "add", "."], cwd=mam.here, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=mam.here, check=True)
    assert mam("run", "--worktree", "--agent", "shell", "echo new > notes.md; echo what it said").code == 0
    job = mam("list", "--json").json[0]["job_id"]
    with mcp(mam) as client:
        listed = client.ask("resources/list")["resources"]
        record = json.loads(_text(client, f"mam://jobs/{job}"))
        log = _text(client, f"mam://jobs/{job}/log")
        diff = _text(client, f"mam://jobs/{job}/diff")
        changes = client.call("result", job=job)["changes"]
        templates = [one["uriTemplate"] for one in client.ask("resources/templates/list")["resourceTemplates"]]

    assert [one["uri"] for one in listed] == [f"mam://jobs/{job}"]
    assert (record["job_id"], record["status"], record["claim_id"]) == (job, "completed", None)
    assert log == "what it said\n"
    assert "-old\n+new\n" in diff
    assert changes.startswith("1 file +1 -1 on mam/")
    assert templates == ["mam://jobs/{id}", "mam://jobs/{id}/log", "mam://jobs/{id}/diff"]


def test_a_long_log_is_cut_at_its_beginning(mam: Mam) -> None:
    assert mam("run", "--agent", "shell", "seq 1 100000").code == 0
    job = mam("list", "--json").json[0]["job_id"]
    with mcp(mam) as client:
        log = _text(client, f"mam://jobs/{job}/log")

    assert log.startswith("[earlier output was cut]\n")
    assert log.endswith("99999\n100000\n")
    assert len(log) <= 256 * 1024 + 30


@pytest.mark.parametrize(("version", "code"), [(NEWEST, -32602), (OLD, -32002)])
def test_other_addresses_are_refused(mam: Mam, version: str, code: int) -> None:
    job = mam("register", "p", "--agent", "codex").line
    bad = ["file:///etc/passwd", "mam://jobs/", "mam://jobs/nope", f"mam://jobs/{job}/", f"mam://jobs/{job}/../x",
           f"mam://jobs/{job}/secrets", f"mam://jobs/{job[:8]}", 7, None, f"MAM://jobs/{job}"]  # fmt: skip
    with mcp(mam, version=version) as client:
        for uri in bad:
            assert client.refused("resources/read", {"uri": uri})["code"] == code, uri


def test_the_prompts_begin_a_conversation(mam: Mam) -> None:
    failed = mam("register", "the failing one", "--agent", "codex").line
    mam("fail", failed, "--reason", "no")
    mam("register", "the open one", "--agent", "codex")
    with mcp(mam) as client:
        names = [prompt["name"] for prompt in client.ask("prompts/list")["prompts"]]
        delegate = client.ask("prompts/get", {"name": "delegate", "arguments": {"task": "fix it", "agent": "codex"}})
        triage = client.ask("prompts/get", {"name": "triage"})
        for wrong in ({"name": "x"}, {"name": "delegate"}, {"name": "delegate", "arguments": {"task": 7}}, {}):
            assert client.refused("prompts/get", wrong)["code"] == -32602

    assert names == ["delegate", "triage"]
    assert "The task: fix it" in delegate["messages"][0]["content"]["text"]
    text = triage["messages"][0]["content"]["text"]
    assert f"- {failed} error: the failing one" in text
    assert "pending: the open one" in text
