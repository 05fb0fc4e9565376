"""A job as a task: what each state of the job looks like, and what a client can do with it."""

from __future__ import annotations

import os

import pytest

from mam.mcp.tasks import LONGEST_MS, SHORTEST_MS
from tests.cli.command import Mam
from tests.mcp.client import FORMS, NEWEST, OLD, TASKS, Json, McpClient, mcp

BOTH = {**TASKS, **FORMS}


def _submit(client: McpClient, **arguments: object) -> Json:
    given = {"prompt": "p", "agent": "codex", **arguments}
    return client.ask("tools/call", {"name": "submit", "arguments": given})


def _state(client: McpClient, task: str) -> Json:
    found = client.ask("tasks/get", {"taskId": task})
    assert found["resultType"] == "complete"
    assert found["taskId"] == task
    return found


def _claim_and_ask(mam: Mam, task: str, *words: str) -> str:
    """The question of the running job."""
    assert mam("pick", "-s", "codex").line == task
    return mam("ask", "Which database?", *words, "--job", task, "--attempt", "1").line


def test_submit_answers_with_a_task_that_is_in_the_store(mam: Mam) -> None:
    with mcp(mam, capabilities=TASKS) as client:
        task = _submit(client)
        assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
        assert mam("get", task["taskId"], "--field", "status").line == "pending"
        assert "No live worker serves the label" in task["statusMessage"]
        assert _state(client, task["taskId"])["status"] == "working"


@pytest.mark.parametrize(("version", "capabilities"), [(NEWEST, {}), (NEWEST, FORMS), (OLD, TASKS)])
def test_only_a_client_that_takes_tasks_gets_one(mam: Mam, version: str, capabilities: Json) -> None:
    with mcp(mam, version=version, capabilities=capabilities) as client:
        assert "taskId" not in _submit(client)


def test_a_detached_job_is_no_task(mam: Mam) -> None:
    with mcp(mam, capabilities=TASKS) as client:
        assert _submit(client, detach=True)["structuredContent"]["status"] == "pending"


def test_the_states_of_a_job_are_those_of_its_task(mam: Mam) -> None:
    (mam.here / "report.md").write_text("r")
    with mcp(mam, capabilities=TASKS) as client:
        done, failed, off = (_submit(client, artifacts=["report.md"])["taskId"] for _ in range(3))
        later = _submit(client, after=[done])["taskId"]
        assert "It waits for job" in _state(client, later)["statusMessage"]
        mam("pick", "-s", "codex")
        assert "attempt 1" in _state(client, done)["statusMessage"]
        mam("complete", done, "--result", "fine")
        mam("fail", failed, "--reason", "no disk")
        client.ask("tasks/cancel", {"taskId": off})
        completed, error, cancelled = (_state(client, task) for task in (done, failed, off))

    assert completed["status"] == error["status"] == "completed"
    assert completed["result"]["isError"] is False
    assert completed["result"]["structuredContent"]["result"]["text"] == "fine"
    assert completed["result"]["structuredContent"]["artifacts"] == ["report.md"]
    assert error["result"]["isError"] is True
    assert error["result"]["structuredContent"]["reason"] == "no disk"
    assert cancelled["status"] == "cancelled"
    assert "cancelled the task" in cancelled["statusMessage"]
    assert mam("get", off, "--field", "status").line == "cancelled"


def test_the_poll_interval_grows_with_the_age(mam: Mam) -> None:
    with mcp(mam, capabilities=TASKS) as client:
        young = _submit(client)["taskId"]
        old = mam.here / ".mam/jobs" / f"{young}.json"
        assert _state(client, young)["pollIntervalMs"] == SHORTEST_MS
    os.utime(old)
    with mcp(mam, capabilities=TASKS, LD_PRELOAD=_clock(), FAKETIME="+1h", FAKETIME_DONT_FAKE_MONOTONIC="1") as client:
        assert _state(client, young)["pollIntervalMs"] == LONGEST_MS


def _clock() -> str:
    from glob import glob

    from tests.needs import need

    need("faketime")
    return glob("/usr/lib/*/faketime/libfaketime.so.1")[0]


def test_a_question_becomes_a_form_and_the_form_an_answer(mam: Mam) -> None:
    with mcp(mam, capabilities=BOTH) as client:
        task = _submit(client)["taskId"]
        question = _claim_and_ask(mam, task, "--choice", "sqlite", "--choice", "mysql")
        asking = _state(client, task)
        client.ask("tasks/update", {"taskId": task, "inputResponses": {question: _accept("mysql")}})
        working = _state(client, task)
        client.ask("tasks/update", {"taskId": task, "inputResponses": {question: _accept("sqlite")}})

    assert asking["status"] == "input_required"
    form = asking["inputRequests"][question]
    assert form["method"] == "elicitation/create"
    assert "Which database?" in form["params"]["message"]
    assert form["params"]["requestedSchema"]["properties"]["answer"]["enum"] == ["sqlite", "mysql"]
    assert working["status"] == "working"
    known = mam("get", task, "--json").json["questions"][0]
    assert (known["state"], known["answer"]) == ("answered", "mysql")
    assert known["answered_by"].endswith("over MCP with test")


def _accept(answer: object) -> Json:
    return {"action": "accept", "content": {"answer": answer}}


@pytest.mark.parametrize(
    "response",
    [{"action": "decline"}, {"action": "cancel"}, _accept("none of them"), _accept(7), "yes", {}, {"action": "accept"}],
)
def test_only_an_answer_closes_the_question(mam: Mam, response: object) -> None:
    """`codex exec` declines for its user, whom it has not asked."""
    with mcp(mam, capabilities=BOTH) as client:
        task = _submit(client)["taskId"]
        question = _claim_and_ask(mam, task, "--choice", "sqlite", "--choice", "mysql")
        responses = {question: response, f"{task}.9": _accept("sqlite"), "x": _accept("sqlite")}
        assert client.ask("tasks/update", {"taskId": task, "inputResponses": responses})["resultType"] == "complete"
        assert _state(client, task)["status"] == "input_required"

    assert mam("get", task, "--json").json["questions"][0].get("answer") is None


def test_a_client_without_forms_is_told_who_answers(mam: Mam) -> None:
    with mcp(mam, capabilities=TASKS) as client:
        task = _submit(client)["taskId"]
        question = _claim_and_ask(mam, task)
        found = _state(client, task)

    assert found["status"] == "working"
    assert f"mam answer {question[:8]}.1" in found["statusMessage"]


def test_wait_shows_the_form_to_a_client_without_tasks(mam: Mam) -> None:
    with mcp(mam, capabilities=FORMS) as client:
        job = client.call("submit", prompt="p", agent="codex")["job_id"]
        question = _claim_and_ask(mam, job)
        call = {"name": "wait", "arguments": {"ids": [job]}}
        first = client.ask("tools/call", call)
        put_off = client.ask("tools/call", {**call, "inputResponses": {question: {"action": "cancel"}}})
        number = client.request("tools/call", {**call, "inputResponses": {question: _accept("postgres")}})
        mam("complete", job, "--attempt", "1")
        ended = client.answer_to(number)["result"]

    assert first["resultType"] == "input_required"
    assert list(first["inputRequests"]) == [question]
    assert put_off["structuredContent"]["news"][0]["questions"][0]["text"] == "Which database?"
    assert ended["structuredContent"]["open"] == []
    assert mam("get", job, "--json").json["questions"][0]["answer"] == "postgres"


def test_permissions_are_answered_elsewhere_unless_the_user_says_so(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    mam("pick", "-s", "codex")
    _ask_permission(mam, job)
    with mcp(mam, capabilities=BOTH) as client:
        assert _state(client, job)["status"] == "working"
        answers = {f"{job}.1": _accept("allow")}
        client.ask("tasks/update", {"taskId": job, "inputResponses": answers})
        assert mam("get", job, "--json").json["questions"][0].get("answer") is None
    mam("config", "set", "questions.mcp_permission", "true")
    with mcp(mam, capabilities=BOTH) as client:
        shown = _state(client, job)["inputRequests"][f"{job}.1"]["params"]
        client.ask("tasks/update", {"taskId": job, "inputResponses": answers})

    assert '{"command": "git push"}' in shown["message"]
    assert shown["requestedSchema"]["properties"]["answer"]["enum"] == ["allow", "deny", "always"]
    assert mam("get", job, "--json").json["questions"][0]["answer"] == "allow"


def test_a_form_that_cannot_show_all_allows_nothing(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    mam("pick", "-s", "codex")
    _ask_permission(mam, job, command=f"echo {'x' * 5_000}; git push --force")
    mam("config", "set", "questions.mcp_permission", "true")
    with mcp(mam, capabilities=BOTH) as client:
        assert _state(client, job)["status"] == "working"
        client.ask("tasks/update", {"taskId": job, "inputResponses": {f"{job}.1": _accept("allow")}})

    assert mam("get", job, "--json").json["questions"][0].get("answer") is None


def _ask_permission(mam: Mam, job: str, command: str = "git push") -> None:
    from mam import questions
    from mam.jobs.question import Draft
    from mam.registry import Registry
    from mam.stores.files.store import FilesStore

    store = FilesStore(str(mam.here / ".mam/jobs"))
    draft = Draft(kind="permission", text="It wants to run a command.", tool="Bash", input={"command": command})
    questions.ask(Registry(store), job, draft, attempt=1)
    store.close()


def test_unknown_tasks_and_clients_without_the_extension_are_refused(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    unknown: tuple[object, ...] = ("nope", job[:8], None, 7, {})
    with mcp(mam, capabilities=TASKS) as client:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            for task in unknown:
                assert client.refused(method, {"taskId": task, "inputResponses": {}})["code"] == -32602
        assert client.refused("tasks/update", {"taskId": job, "inputResponses": []})["code"] == -32602
    with mcp(mam) as client:
        error = client.refused("tasks/get", {"taskId": job})
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"]["extensions"] == TASKS["extensions"]
        assert client.refused("subscriptions/listen", {"notifications": {"taskIds": [job]}})["code"] == -32021


def test_a_stream_tells_of_tasks_and_resources(mam: Mam) -> None:
    with mcp(mam, capabilities=TASKS) as client:
        task = _submit(client)["taskId"]
        wanted = {
            "taskIds": [task, "gone"], "toolsListChanged": True,
            "resourceSubscriptions": [f"mam://jobs/{task}", "file:///etc/passwd"],
        }  # fmt: skip
        stream = client.request("subscriptions/listen", {"notifications": wanted})
        opened = client.read()
        mam("complete", task)
        first = client.read()
        second = client.read()
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": stream}})
        assert client.ask("server/discover")

    assert opened["method"] == "notifications/subscriptions/acknowledged"
    agreed = {"resourceSubscriptions": [f"mam://jobs/{task}"], "taskIds": [task]}
    assert opened["params"]["notifications"] == agreed
    assert first["method"] == "notifications/resources/updated"
    assert second["method"] == "notifications/tasks"
    assert second["params"]["status"] == "completed"
    for message in (opened, first, second):
        assert message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == stream


def test_a_subscription_of_the_old_form_works(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    with mcp(mam, version=OLD) as client:
        assert client.ask("resources/subscribe", {"uri": f"mam://jobs/{job}"}) == {}
        assert client.refused("resources/subscribe", {"uri": "mam://jobs/none"})["code"] == -32002
        mam("edit", job, "--priority", "3")
        news = client.read()
        client.ask("resources/unsubscribe", {"uri": f"mam://jobs/{job}"})
        mam("cancel", job)
        client.ask("ping")

    assert (news["method"], news["params"]) == ("notifications/resources/updated", {"uri": f"mam://jobs/{job}"})
    assert not any("method" in notice for notice in client.notices)
