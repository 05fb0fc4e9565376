"""Any agent that asks by the Agent Client Protocol finds everything ready: a worker, a fake agent, and a person."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import await_that
from tests.work.worker_commands import Working, ended, mam_fixture, no_process_left

if TYPE_CHECKING:
    from typing import Any

    from tests.cli.command import Mam

__all__ = ["mam_fixture", "no_process_left"]

HERE = Path(__file__).parent
ARGV = [sys.executable, "-P", str(HERE / "acp_driver.py"), str(HERE / "acp_agent.py"), "{prompt}"]


@pytest.fixture
def agent(mam: Mam) -> Mam:
    """A mam that knows the fake agent."""
    mam("config", "set", "commands.fake.argv", str(ARGV).replace("'", '"'))
    return mam


def question_of(mam: Mam, job: str) -> dict[str, Any]:
    """The open question of the job, once there is one."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found[:] = [one for one in mam("questions", "--json").json if one["job_id"] == job]
        return bool(found)

    await_that(is_there)
    return found[0]


def test_a_person_allows_and_the_agent_acts(agent: Mam) -> None:
    job = agent.register("run: echo x >made", "--agent", "fake", "--artifact", "made")
    with Working(agent, "-s", "fake", "--once"):
        question = question_of(agent, job)
        assert (question["tool"], question["input"]) == ("execute", {"command": "echo x >made"})
        assert not (agent.here / "made").exists(), "nothing ran before the answer"
        assert agent("answer", job, "allow").code == 0
        assert ended(agent, job)["status"] == "completed"


def test_a_denial_is_part_of_the_conversation(agent: Mam) -> None:
    """The agent follows the reason, asks for another command, and the checks decide."""
    job = agent.register("run: echo x >wrong", "--agent", "fake", "--artifact", "right")
    with Working(agent, "-s", "fake", "--once"):
        question_of(agent, job)
        assert agent("answer", job, "deny", "--reason", "run: echo x >right").code == 0
        assert question_of(agent, job)["input"] == {"command": "echo x >right"}
        assert agent("answer", job, "allow").code == 0
        record = ended(agent, job)
    assert record["status"] == "completed"
    assert not (agent.here / "wrong").exists()
    run = record["run"]
    assert isinstance(run, dict)
    assert run["denials"] == 1
    assert "1 permission was denied" in agent("show", job).out


def test_a_worker_that_is_killed_while_it_waits(agent: Mam) -> None:
    """The question is withdrawn, the next attempt asks under a new id, and the old answer is refused."""
    job = agent.register("run: echo x >made", "--agent", "fake", "--artifact", "made")
    with Working(agent, "-s", "fake", "--once") as worker:
        first = question_of(agent, job)
        worker.kill()
        worker.communicate()
    agent("release", job)
    with Working(agent, "-s", "fake", "--once"):
        again = question_of(agent, job)
        assert (first["id"], again["id"]) == (f"{job}.1", f"{job}.2")
        agent("answer", first["id"], "allow").failed(4, "was withdrawn")
        assert agent("answer", again["id"], "allow").code == 0
        assert ended(agent, job)["status"] == "completed"


def test_no_answer_before_the_deadline(agent: Mam) -> None:
    agent("config", "set", "questions.deadline_seconds", "1")
    job = agent.register("run: echo x >made", "--agent", "fake", "--artifact", "made")
    with Working(agent, "-s", "fake", "--once") as worker:
        assert ended(agent, job)["status"] == "error"
        worker.communicate()
    assert not (agent.here / "made").exists()
    record = agent.record(job)
    assert record["questions"][0]["state"] == "expired"
    assert record["reason"].startswith("permission_denied: no one answered before the deadline whether execute")
