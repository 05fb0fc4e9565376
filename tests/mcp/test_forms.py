"""Questions as forms, at clients that take no tasks: while they wait, and for their own questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mcp.client import FORMS, NEWEST, OLD, OLDEST, Json, McpClient, mcp

if TYPE_CHECKING:
    from tests.cli.command import Mam

HANDSHAKES = (OLD, OLDEST)
CHOICES = ("--choice", "sqlite", "--choice", "mysql")


def _ask(mam: Mam, job: str, *words: str) -> str:
    """A question of the job, under a claim."""
    assert mam("pick", "-s", "codex").line == job
    return mam("ask", "Which database?", *words, "--job", job, "--attempt", "1").line


def _wait(client: McpClient, job: str, **arguments: object) -> int:
    return client.request("tools/call", {"name": "wait", "arguments": {"ids": [job], **arguments}})


def _form(client: McpClient) -> Json:
    """The next form that the server asks to show."""
    message = client.read()
    assert message["method"] == "elicitation/create", message
    return message


def _respond(client: McpClient, form: Json, response: object) -> None:
    client.send({"jsonrpc": "2.0", "id": form["id"], "result": response})


def _accept(answer: object) -> Json:
    return {"action": "accept", "content": {"answer": answer}}


def _question(mam: Mam, job: str) -> Json:
    found: Json = mam("get", job, "--json").json["questions"][0]
    return found


@pytest.mark.parametrize("version", HANDSHAKES)
def test_a_client_with_a_handshake_shows_a_form_while_it_waits(mam: Mam, version: str) -> None:
    job = mam("register", "p", "--agent", "codex").line
    with mcp(mam, version=version, capabilities=FORMS) as client:
        number = _wait(client, job)
        _ask(mam, job, *CHOICES)
        form = _form(client)
        _respond(client, form, _accept("mysql"))
        client.ask("ping")
        assert _question(mam, job)["answer"] == "mysql"
        mam("complete", job, "--attempt", "1", "--result", "done")
        ended = client.answer_to(number)["result"]["structuredContent"]

    assert "Which database?" in form["params"]["message"]
    assert form["params"]["requestedSchema"]["properties"]["answer"]["enum"] == ["sqlite", "mysql"]
    assert ("mode" in form["params"]) is (version == OLD)
    assert ended["news"][0]["result"]["text"] == "done"
    assert _question(mam, job)["answered_by"].endswith("over MCP with test")


@pytest.mark.parametrize(
    "response", [{"action": "cancel"}, {"action": "decline"}, _accept("neither"), _accept(7), "yes", {}, None]
)
def test_a_form_that_is_put_off_leaves_the_question_open(mam: Mam, response: object) -> None:
    job = mam("register", "p", "--agent", "codex").line
    with mcp(mam, version=OLD, capabilities=FORMS) as client:
        number = _wait(client, job)
        question = _ask(mam, job, *CHOICES)
        _respond(client, _form(client), response)
        waited = client.answer_to(number)["result"]["structuredContent"]
        again = client.call("wait", ids=[job], cursor=waited["cursor"], seconds=0)

    assert waited["news"][0]["questions"][0]["id"] == question
    assert again["news"] == []
    assert not client.notices
    assert _question(mam, job).get("state", "open") == "open"


def test_a_client_that_cannot_show_the_form_puts_it_off(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    with mcp(mam, version=OLD, capabilities=FORMS) as client:
        number = _wait(client, job)
        _ask(mam, job)
        error = {"code": -32601, "message": "no forms"}
        client.send({"jsonrpc": "2.0", "id": _form(client)["id"], "error": error})
        assert client.answer_to(number)["result"]["structuredContent"]["news"]


def test_a_form_outlives_the_wait_and_its_late_answer_counts(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    with mcp(mam, version=OLD, capabilities=FORMS) as client:
        _ask(mam, job)
        number = _wait(client, job, seconds=0)
        form = _form(client)
        waited = client.answer_to(number)["result"]["structuredContent"]
        _respond(client, form, _accept("postgres"))
        client.ask("ping")
        assert _question(mam, job)["answer"] == "postgres"
        _respond(client, form, _accept("mysql"))
        client.ask("ping")

    assert waited["news"][0]["questions"]
    assert _question(mam, job)["answer"] == "postgres"


def test_a_form_is_taken_back_when_the_question_is_answered_elsewhere(mam: Mam) -> None:
    job = mam("register", "p", "--agent", "codex").line
    with mcp(mam, version=OLD, capabilities=FORMS) as client:
        first, second = _wait(client, job), _wait(client, job)
        question = _ask(mam, job)
        form = _form(client)
        mam("answer", question, "postgres")
        taken_back = client.read()
        mam("complete", job, "--attempt", "1")
        ended = [client.answer_to(number)["result"]["structuredContent"]["open"] for number in (first, second)]

    assert (taken_back["method"], taken_back["params"]["requestId"]) == ("notifications/cancelled", form["id"])
    assert ended == [[], []]


@pytest.mark.parametrize("version", [NEWEST, *HANDSHAKES])
def test_without_forms_and_inside_a_job_there_are_none(mam: Mam, version: str) -> None:
    job = mam("register", "p", "--agent", "codex").line
    question = _ask(mam, job)
    with mcp(mam, version=version) as client:
        assert client.call("wait", ids=[job], seconds=0)["news"][0]["questions"][0]["id"] == question
    own = mam("register", "own", "--agent", "codex", "-s", "own").line
    mam("pick", "-s", "own")
    with mcp(mam, version=version, capabilities=FORMS, MAM_JOB_ID=own, MAM_STORE_MARK="x") as client:
        assert client.call("wait", ids=[job], seconds=0)["news"][0]["questions"][0]["id"] == question
        assert not client.notices


@pytest.mark.parametrize("version", [NEWEST, *HANDSHAKES])
def test_the_question_of_an_agent_is_a_form_for_its_user(mam: Mam, version: str) -> None:
    arguments = {"question": "Which colour?", "choices": ["red", "blue"]}
    with mcp(mam, version=version, capabilities=FORMS) as client:
        call = {"name": "ask", "arguments": arguments}
        if version == NEWEST:
            asked = client.ask("tools/call", call)
            ((key, form),) = asked["inputRequests"].items()
            result = client.ask("tools/call", {**call, "inputResponses": {key: _accept("blue")}})
        else:
            number = client.request("tools/call", call)
            form = _form(client)
            _respond(client, form, _accept("blue"))
            result = client.answer_to(number)["result"]

    assert form["params"]["message"].startswith("An agent asks: Which colour?")
    assert form["params"]["requestedSchema"]["properties"]["answer"]["enum"] == ["red", "blue"]
    assert (result["structuredContent"]["state"], result["structuredContent"]["answer"]) == ("answered", "blue")
    (job,) = mam("list", "--json").json
    assert (job["agent"], job["status"], job["result"]) == ("human", "completed", "blue")


def test_an_agent_goes_on_waiting_for_what_its_user_put_off(mam: Mam) -> None:
    with mcp(mam, version=OLD, capabilities=FORMS) as client:
        number = client.request("tools/call", {"name": "ask", "arguments": {"question": "Which colour?"}})
        _respond(client, _form(client), {"action": "cancel"})
        client.ask("ping")
        (job,) = mam("list", "--json").json
        mam("answer", job["job_id"], "green")
        assert client.answer_to(number)["result"]["structuredContent"]["answer"] == "green"


def test_a_response_ends_no_job_that_asks_something_else(mam: Mam) -> None:
    """A client that sends responses on its own names other jobs: of another question, or not for a person."""
    human = mam("register", "Deploy?", "--agent", "human").line
    codex = mam("register", "Which colour?", "--agent", "codex").line
    with mcp(mam, capabilities=FORMS) as client:
        responses = {human: _accept("yes"), codex: _accept("yes"), "x": _accept("yes")}
        call = {"name": "ask", "arguments": {"question": "Which colour?"}, "inputResponses": responses}
        assert client.ask("tools/call", call)["resultType"] == "input_required"

    assert [mam("get", job, "--field", "status").line for job in (human, codex)] == ["pending", "pending"]
