"""The port of askers: what an agent needs becomes a question, and the decision reaches the agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from mam import questions
from mam.door_client import DoorError
from mam.errors import ClaimLost, MamError
from mam.jobs.question import PERMISSION, QUESTION, Draft, open_questions
from mam.jobs.question_acts import Answer
from mam.jobs.rules import Rule
from mam.work.asking.at_door import DoorAsker
from mam.work.asking.at_session import SessionAsker
from mam.work.asking.denials import Denials
from mam.work.asking.finding import find_asker
from mam.work.asking.in_worker import WorkerAsker
from mam.work.asking.policy import Policy
from mam.work.asking.session_files import asks_path, directory_of, request_names
from mam.work.asking.session_requests import SessionRequests
from mam.work.live.assignment import ENDED, HANDED, Assignment, write_assignment
from tests.waiting import await_that
from tests.work.door_fixtures import door_fixture, door_server_fixture, job_fixture, registry_fixture
from tests.work.doors import ask, claimed, refused, say, through

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.asking.port import Decision
    from mam.work.door.server import Door, DoorServer

__all__ = ["door_fixture", "door_server_fixture", "job_fixture", "registry_fixture"]

PUSH = Draft(kind=PERMISSION, text="It wants to run a command.", tool="Bash", input={"command": "git push"})
DATABASE = Draft(kind=QUESTION, text="Which database?", choices=("sqlite", "postgres"))


@pytest.fixture
def agent() -> Iterator[ThreadPoolExecutor]:
    """The agent's own thread, which waits for its decisions."""
    with ThreadPoolExecutor(4) as pool:
        yield pool


def asked(registry: Registry, job: Job, count: int = 1) -> None:
    await_that(lambda: len(open_questions(registry.get(job.job_id))) == count)


def reply(registry: Registry, job: Job, answer: str, reason: str | None = None) -> None:
    """A person answers the first open question."""
    question = open_questions(registry.get(job.job_id))[0]
    given = Answer(
        number=question.number, attempt=question.attempt, digest=question.digest, answer=answer, by="anna@pc",
        reason=reason,
    )  # fmt: skip
    questions.answer(registry, job.job_id, given)


# -- at the door -------------------------------------------------------------------------------------------------------


def test_a_person_allows_and_denies_with_a_reason(
    registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor
) -> None:
    for answer, reason, outcome in (
        ("allow", None, "allow"),
        ("deny", "use a branch", "deny"),
        ("always", None, "allow"),
    ):
        future = agent.submit(DoorAsker(through(door)).decide, PUSH)
        asked(registry, job)
        question = open_questions(registry.get(job.job_id))[0]
        assert (question.tool, question.input, question.kind) == ("Bash", {"command": "git push"}, "permission")
        assert question.ends is not None, "a permission has a deadline"
        reply(registry, job, answer, reason)
        decision = future.result()
        assert (decision.outcome, decision.reason, decision.decided) == (outcome, reason, "person")
        assert decision.is_allowed is (outcome == "allow")
        assert not decision.is_undecided
    assert door.asker.denials == Denials(count=1, decided=frozenset({"Bash"}))


def test_a_question_with_choices_gets_its_answer(
    registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor
) -> None:
    future = agent.submit(DoorAsker(through(door)).decide, DATABASE)
    asked(registry, job)
    reply(registry, job, "postgres", "we have one")
    decision = future.result()
    assert (decision.outcome, decision.text, decision.reason) == ("answer", "postgres", "we have one")
    assert decision.message == "postgres"


def test_a_deadline_refuses_and_counts_as_undecided(job: Job, door: Door) -> None:
    decision = DoorAsker(through(door)).decide(PUSH.replace(deadline_seconds=0.05))
    assert (decision.outcome, decision.decided, decision.is_undecided) == ("deny", "deadline", True)
    assert "No one answered" in decision.message
    assert door.asker.denials == Denials(count=1, undecided=("Bash",))
    assert DoorAsker(through(door)).decide(DATABASE.replace(default="sqlite", deadline_seconds=0)).text == "sqlite"
    assert job.job_id


def test_several_questions_wait_at_once(registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor) -> None:
    futures = {}
    for number in (1, 2, 3):
        futures[number] = agent.submit(DoorAsker(through(door)).decide, DATABASE.replace(text=f"Which {number}?"))
        asked(registry, job, number)
    for answer in ("sqlite", "postgres", "sqlite"):
        reply(registry, job, answer)
    assert [futures[number].result().text for number in (1, 2, 3)] == ["sqlite", "postgres", "sqlite"]


def test_the_end_of_the_attempt_withdraws(registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor) -> None:
    future = agent.submit(DoorAsker(through(door)).decide, PUSH)
    asked(registry, job)
    registry.cancel(job.job_id)
    decision = future.result()
    assert (decision.outcome, decision.is_undecided, decision.is_allowed) == ("withdrawn", True, False)


def test_an_agent_that_no_longer_waits_withdraws(
    registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor
) -> None:
    over: list[bool] = []
    future = agent.submit(DoorAsker(through(door)).decide, PUSH, lambda: bool(over))
    asked(registry, job)
    over.append(True)
    assert future.result().outcome == "withdrawn"
    assert registry.get(job.job_id).questions[0]["state"] == "withdrawn"
    line = [line for entry in registry.store.entries(None) for line in entry.lines][-1]
    assert (line["event"], line["question"]) == ("withdrawn", 1)


def test_a_killed_asker_withdraws_its_question(registry: Registry, job: Job, door: Door) -> None:
    script = "from mam.work.asking.finding import find_asker\nfrom mam.jobs.question import Draft\nimport os\n"
    script += "find_asker(os.environ).decide(Draft(kind='permission', text='Which?'))"
    with subprocess.Popen([sys.executable, "-c", script], env={**os.environ, **door.environment}) as process:
        asked(registry, job)
        await_that(lambda: any(connection.wait is not None for connection in list(door.connections)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        await_that(lambda: not open_questions(registry.get(job.job_id)))
    assert registry.get(job.job_id).questions[0]["state"] == "withdrawn"
    assert registry.get(job.job_id).status == "running"


def test_a_command_that_was_interrupted_finds_its_question_again(
    registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor
) -> None:
    """An agent ends a command that waits for long, and runs it again."""
    first, asker = DoorAsker(through(door)).open(DATABASE), DoorAsker(through(door))
    assert asker.open(DATABASE) == first
    reply(registry, job, "sqlite")
    assert agent.submit(asker.decide, DATABASE).result().text == "sqlite"
    assert len(registry.get(job.job_id).questions) == 1
    assert asker.open(PUSH).number == 2
    assert asker.open(PUSH).number == 3, "two uses of a tool need two permissions"


def test_an_old_attempt_cannot_ask(registry: Registry, job: Job, door: Door) -> None:
    registry.release(job.job_id, attempt=1)
    claimed(registry, registry.get(job.job_id))
    with pytest.raises(DoorError, match="Attempt 1"):
        DoorAsker(through(door)).open(PUSH)
    assert registry.get(job.job_id).questions == []


@pytest.mark.parametrize(
    "draft",
    [
        "", "[]", "{}", '{"kind": "permission"}', '{"kind": "x", "text": "y"}', '{"kind": "question", "text": " "}',
        '{"kind": "question", "text": "x", "answer": "allow"}', '{"kind": "question", "text": 1}',
        '{"kind": "question", "text": "x", "choices": [1]}', '{"kind": "question", "text": "x", "choices": "abc"}',
        '{"kind": "question", "text": "x", "deadline_seconds": -1}',
        '{"kind": "question", "text": "x", "deadline_seconds": true}',
        '{"kind": "question", "text": "\\ud800"}', '{"kind": "permission", "text": "x", "default": "always"}',
        '{"kind": "permission", "text": "x", "input": ' + "[" * 200 + "]" * 200 + "}",
    ],
)  # fmt: skip
def test_hostile_drafts_are_refused(registry: Registry, job: Job, door: Door, draft: str) -> None:
    body = draft.encode()
    answer = say(door, f'{{"verb": "ask", "body": {len(body)}}}\n'.encode() + body)
    refused(answer, 2)
    assert registry.get(job.job_id).questions == []


def test_a_door_answers_no_question(registry: Registry, job: Job, door: Door) -> None:
    """Nothing of an agent can answer, add a rule, or trust."""
    DoorAsker(through(door)).open(PUSH)
    for verb in ("answer", "rules", "token", "trust"):
        refused(ask(door, verb=verb, question=1, answer="allow"), 1, "is not for this socket")
    for question in (0, -1, 2, "1", True, None):
        assert ask(door, verb="await", question=question, longest=0).get("exit_code") in (2, 4), question
    refused(ask(door, verb="await", question=1, longest=99), 2, "longest")
    assert len(open_questions(registry.get(job.job_id))) == 1
    assert job.attempt == 1


def test_a_job_that_may_not_ask(registry: Registry, door_server: DoorServer) -> None:
    job = claimed(registry, registry.register(prompt="x", agent="shell", may_ask=False).job)
    with door_server.open(job.job_id, 1, "/", claim_id=job.claim_id) as door:
        with pytest.raises(DoorError, match="--no-ask"):
            DoorAsker(through(door)).open(PUSH)


# -- in the worker -----------------------------------------------------------------------------------------------------


def test_an_adapter_in_the_worker_asks(registry: Registry, job: Job, door: Door, agent: ThreadPoolExecutor) -> None:
    future = agent.submit(door.asker.decide, PUSH)
    asked(registry, job)
    reply(registry, job, "deny", "no")
    door.asker.record_changed()
    assert future.result().message == "no"
    future = agent.submit(door.asker.decide, PUSH)
    asked(registry, job)
    door.close()
    assert future.result().outcome == "withdrawn"


# -- in a live session -------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "session").mkdir(mode=0o700)
    return str(tmp_path / "session")


def session_environment(root: str, job: Job, **changes: Any) -> dict[str, str]:
    assignment = Assignment(generation_id="g1", job_id=job.job_id, attempt=1, turn=HANDED, may_ask=True)
    write_assignment(root, assignment.replace(**changes))
    return {"MAM_SESSION_DIR": root, "MAM_GENERATION": "g1"}


def session_decision(agent: ThreadPoolExecutor, environ: dict[str, str]) -> Future[Decision]:
    asker = find_asker(environ)
    assert isinstance(asker, SessionAsker)
    return agent.submit(asker.decide, PUSH)


def test_a_hook_of_a_session_outlives_the_worker(
    registry: Registry, job: Job, door: Door, door_server: DoorServer, agent: ThreadPoolExecutor, root: str
) -> None:
    """The next claim asks under a new number; the answer to the old one is refused."""
    future = session_decision(agent, session_environment(root, job))
    await_that(lambda: bool(request_names(root)))
    SessionRequests(root, job.job_id, door.asker).look()
    (first,) = open_questions(registry.get(job.job_id))

    registry.release(job.job_id, attempt=1)  # the worker is gone
    again = claimed(registry, registry.get(job.job_id))
    assert not future.done()
    with door_server.open(again.job_id, 2, "/", claim_id=again.claim_id) as second:
        requests = SessionRequests(root, job.job_id, second.asker)
        requests.look()
        (question,) = open_questions(registry.get(job.job_id))
        assert (question.number, question.attempt, question.digest) == (2, 2, first.digest)
        old = Answer(number=1, attempt=1, digest=first.digest, answer="allow", by="anna@pc")
        with pytest.raises(MamError) as late:
            questions.answer(registry, job.job_id, old)
        assert late.value.exit_code == 4
        reply(registry, job, "deny", "not today")
        second.asker.record_changed()
        requests.look()
        assert future.result().message == "not today"
        requests.look()
        assert second.asker.denials.count == 1
    assert os.listdir(directory_of(root)) == []


def test_a_hook_that_ends_withdraws_its_question(registry: Registry, job: Job, door: Door, root: str) -> None:
    """For example, because a person answered at the keyboard."""
    script = "from mam.work.asking.finding import find_asker\nfrom mam.jobs.question import Draft\nimport os\n"
    script += "find_asker(os.environ).decide(Draft(kind='permission', text='Which?'))"
    environ = {**os.environ, **session_environment(root, job)}
    with subprocess.Popen([sys.executable, "-c", script], env=environ) as hook:
        await_that(lambda: bool(request_names(root)))
        requests = SessionRequests(root, job.job_id, door.asker)
        requests.look()
        assert len(open_questions(registry.get(job.job_id))) == 1
        hook.kill()
        hook.wait()
    requests.look()
    assert registry.get(job.job_id).questions[0]["state"] == "withdrawn"
    assert os.listdir(directory_of(root)) == []


def test_a_hook_ends_when_its_job_has_left_the_session(agent: ThreadPoolExecutor, job: Job, root: str) -> None:
    future = session_decision(agent, session_environment(root, job))
    await_that(lambda: bool(request_names(root)))
    session_environment(root, job, turn=ENDED)
    assert future.result().outcome == "withdrawn"


def test_a_session_without_a_job_that_may_ask_has_no_asker(job: Job, root: str) -> None:
    assert find_asker({"MAM_SESSION_DIR": root, "MAM_GENERATION": "g1"}) is None
    assert find_asker(session_environment(root, job, may_ask=False)) is None
    assert find_asker(session_environment(root, job, turn=ENDED)) is None
    assert find_asker({**session_environment(root, job), "MAM_GENERATION": "g2"}) is None
    assert find_asker({}) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"job_id": "x"}', b'{"process": {"pid": 1}, "draft": {}}'])
def test_a_file_that_no_hook_wrote_asks_nothing(
    registry: Registry, job: Job, door: Door, root: str, content: bytes
) -> None:
    os.mkdir(directory_of(root))
    with open(asks_path(root, "x"), "wb") as file:
        file.write(content)
    SessionRequests(root, job.job_id, door.asker).look()
    assert registry.get(job.job_id).questions == []
    assert os.listdir(directory_of(root)) == []


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def policy() -> Policy:
    return Policy(
        rules=lambda _workdir: (
            (Rule(do="ask", argv=("git", "push")),),
            (
                Rule(do="deny", argv=("git", "push"), reason="use a branch"),
                Rule(do="ask", argv=("git", "pull")),
                Rule(do="allow", argv=("git",)),
            ),
        ),
        secrets=("hunter2hunter2",),
    )


def lines_of(registry: Registry, job: Job) -> list[dict[str, Any]]:
    return [line for entry in registry.store.entries(None) for line in entry.lines if line["job_id"] == job.job_id]


def test_rules_decide_without_a_person(registry: Registry, job: Job, policy: Policy) -> None:
    asker = WorkerAsker(registry, job.job_id, 1, job.claim_id, policy)
    denied = asker.decide(PUSH)
    assert (denied.outcome, denied.message, denied.decided, denied.question) == ("deny", "use a branch", "rule", None)
    assert not denied.is_undecided
    allowed = asker.decide(PUSH.replace(input={"command": "git log --author hunter2hunter2"}))
    assert allowed.is_allowed
    assert asker.denials == Denials(count=1, decided=frozenset({"Bash"}))
    assert registry.get(job.job_id).questions == []
    first, second = [line for line in lines_of(registry, job) if line["event"] == "decided"]
    assert (first["answer"], first["rule"], first["what"]) == (
        "deny",
        "deny any agent any tool: git push …",
        "git push",
    )
    assert (second["answer"], second["what"]) == ("allow", "git log --author **************")
    assert asker.open(PUSH.replace(input={"command": "git pull"})).is_open, "this rule asks"
    assert asker.open(PUSH.replace(input={"command": "git log; x"})).is_open, "no rule allows a shell operator"


def test_always_holds_for_the_job_and_its_continuations(
    registry: Registry, job: Job, door: Door, policy: Policy, agent: ThreadPoolExecutor
) -> None:
    pull = PUSH.replace(input={"command": "git pull"})
    asker = WorkerAsker(registry, job.job_id, 1, job.claim_id, policy)
    future = agent.submit(asker.decide, pull)
    asked(registry, job)
    reply(registry, job, "always")
    asker.record_changed()
    assert future.result().is_allowed
    again = asker.decide(pull.replace(text="once more"))
    assert (again.is_allowed, again.decided) == (True, "rule")
    assert lines_of(registry, job)[-1]["rule"] == "always, by anna@pc"
    assert asker.open(pull.replace(input={"command": "git pull --force"})).is_open, "this is another command"

    for _ in range(30):  # the answers of a long job are dropped from the record, but not this one
        reply(registry, job, "deny")
        asker.open(pull.replace(input={"command": "git pull x"}))
    other = claimed(registry, registry.register(prompt="x", agent="shell").job)
    asks_again = WorkerAsker(registry, other.job_id, 1, other.claim_id, policy).open(pull)
    assert asks_again.is_open, "another job asks again"
    continuation = registry.continue_job(job.job_id, prompt="more").job
    registry.cancel(job.job_id)
    after = claimed(registry, continuation)
    later = WorkerAsker(registry, after.job_id, 1, after.claim_id, policy)
    assert later.decide(pull).is_allowed
    assert later.decide(PUSH).outcome == "deny", "a rule that denies is stronger"
    assert door.scope.job_id == job.job_id


def test_an_old_attempt_gets_nothing_from_a_rule(registry: Registry, job: Job, policy: Policy) -> None:
    registry.release(job.job_id, attempt=1)
    claimed(registry, registry.get(job.job_id))
    with pytest.raises(ClaimLost):
        WorkerAsker(registry, job.job_id, 1, job.claim_id, policy).decide(PUSH)


def test_an_old_attempt_gets_no_answer_again(registry: Registry, job: Job) -> None:
    asker = WorkerAsker(registry, job.job_id, 1, job.claim_id, Policy())
    asker.open(DATABASE)
    reply(registry, job, "sqlite")
    assert asker.open(DATABASE).answer == "sqlite"
    registry.release(job.job_id, attempt=1)
    with pytest.raises(ClaimLost):
        asker.open(DATABASE)
