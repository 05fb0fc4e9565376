"""The worker is killed in the middle of ten turns. Each goes on in its own conversation, and does nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.agent_table import agent_kind
from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.test_jobs import AGENTS
from tests.waiting import await_that
from tests.work.agent_facts import AGENT_FACTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_agents.model_server import ModelServer

pytestmark = pytest.mark.timeout(900)
"""Ten starts of OpenCode take minutes on a busy machine."""
LEASE, LONGEST = ("--lease", "15"), 280.0
AT_ONCE = 5
STEPS = "model: run echo {job} >>effects.txt\nmodel: hang"


def test_ten_jobs_are_resumed_on_files(tmp_path: Path, model: ModelServer, agent: str) -> None:
    _kill_and_resume(AgentSetup(agent, tmp_path, model), 10)


def test_ten_jobs_are_resumed_on_sqlite(tmp_path: Path, model: ModelServer, agent: str) -> None:
    _kill_and_resume(AgentSetup(agent, tmp_path, model, f"sqlite:///{tmp_path}/jobs.db"), 10)


def test_ten_jobs_are_resumed_on_postgresql(tmp_path: Path, model: ModelServer, agent: str, database: str) -> None:
    _kill_and_resume(AgentSetup(agent, tmp_path, model, database), 10)


@pytest.mark.few
def test_a_job_is_resumed_after_kill_9(tmp_path: Path, model: ModelServer, agent: str) -> None:
    _kill_and_resume(AgentSetup(agent, tmp_path, model), 1)


def test_an_attempt_that_printed_nothing_keeps_the_conversation(tmp_path: Path, model: ModelServer, agent: str) -> None:
    setup = AgentSetup(agent, tmp_path, model)
    setup.mam.env["IS_SANDBOX"] = "1"
    setup.mam("init")
    job = setup.job(STEPS, "--permissions", "full")  # OpenCode prints nothing before its first step has ended
    known = _kill_in_the_middle(setup, [job], agent)
    silent = tmp_path / "silent" / agent_kind(agent).program
    silent.parent.mkdir()
    silent.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 1000\n", "utf-8")
    silent.chmod(0o700)
    path = setup.mam.env["PATH"]
    setup.mam.env["PATH"] = f"{silent.parent}:{path}"
    worker = setup.mam.start("worker", "--label", agent, *LEASE)
    await_that((tmp_path / "begun").exists, "the second attempt did not begin", LONGEST)
    worker.kill()
    worker.communicate()

    setup.mam.env["PATH"] = path
    model.release()
    with setup.at_work(*LEASE):
        setup.wait_until_ended(job)

    ended = setup.record(job)
    assert (ended["status"], ended["result"], ended["attempt"]) == ("completed", "Done at last.", 3), ended["reason"]
    assert ended["run"]["agent"]["resumed"] == ended["run"]["agent"]["session"] == known[job]


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _kill_and_resume(setup: AgentSetup, count: int) -> None:
    setup.mam.env["IS_SANDBOX"] = "1"  # Claude Code does not believe root otherwise
    setup.mam("init")
    if setup.agent == "opencode" and count > 1:
        setup.done("model: say Hello.")  # its first start makes its database, which five at once can stop
    jobs: list[str] = []
    labels: list[str] = []
    known: dict[str, str] = {}
    while len(jobs) < count:
        # A label of their own, because the leases of those before may end at any time.
        labels.append(f"round-{len(labels)}")
        words = ("--permissions", "full", "--label", labels[-1])
        own = [setup.job(STEPS, *words) for _ in range(min(count - len(jobs), AT_ONCE))]
        known |= _kill_in_the_middle(setup, own, labels[-1])
        jobs += own
    asked = len(setup.model.seen)
    setup.model.release()
    with setup.at_work(*(word for label in labels for word in ("--label", label)), "--concurrency", str(AT_ONCE)):
        setup.wait_until_ended(*jobs)

    ended = [setup.record(job) for job in jobs]
    for job in ended:
        about = job["run"]["agent"]
        assert (job["status"], job["result"]) == ("completed", "Done at last."), job["reason"]
        assert about["resumed"] == about["session"] == known[job["job_id"]]
        assert about["tokens"] == {"input": 100, "cached": 11, "output": 22}
    assert sorted((setup.here / "effects.txt").read_text().split()) == sorted(jobs)
    answers = len(setup.model.seen) - asked
    assert answers == count
    expected = answers * AGENT_FACTS[setup.agent].answer_cost
    assert sum(job["run"]["agent"]["cost_usd"] for job in ended) == pytest.approx(expected)


def _kill_in_the_middle(setup: AgentSetup, jobs: list[str], label: str) -> dict[str, str]:
    """Kills a worker when the agents of all its jobs are in their turns. Returns the sessions that the records name."""
    worker = setup.mam.start("worker", "--label", label, "--concurrency", str(len(jobs)), *LEASE)
    for _ in jobs:
        assert setup.model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: len(_sessions(setup, jobs)) == len(jobs), "the sessions are not in the records", LONGEST)
    known = _sessions(setup, jobs)
    worker.kill()
    worker.communicate()
    return known


def _sessions(setup: AgentSetup, jobs: list[str]) -> dict[str, str]:
    """Of the jobs that run now."""
    found = {}
    for job in map(setup.record, jobs):
        session = ((job["run"] or {}).get("agent") or {}).get("session")
        if session and job["status"] == "running":
            found[job["job_id"]] = session
    return found
