"""The worker is killed in the middle of ten turns. Each goes on in its own conversation, and does nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real_agents.office import Office
from tests.real_agents.test_jobs import AGENTS
from tests.waiting import await_that
from tests.work.agent_facts import AGENT_FACTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_agents.model_server import ModelServer

LEASE, LONGEST = ("--lease", "15"), 280.0
AT_ONCE = 5
STEPS = "model: run echo {job} >>effects.txt\nmodel: hang"


def test_ten_jobs_are_resumed_on_files(tmp_path: Path, model: ModelServer, agent: str) -> None:
    _kill_and_resume(Office(agent, tmp_path, model), 10)


def test_ten_jobs_are_resumed_on_sqlite(tmp_path: Path, model: ModelServer, agent: str) -> None:
    _kill_and_resume(Office(agent, tmp_path, model, f"sqlite:///{tmp_path}/jobs.db"), 10)


def test_ten_jobs_are_resumed_on_postgresql(tmp_path: Path, model: ModelServer, agent: str, database: str) -> None:
    _kill_and_resume(Office(agent, tmp_path, model, database), 10)


@pytest.mark.few
def test_a_job_is_resumed_after_kill_9(tmp_path: Path, model: ModelServer, agent: str) -> None:
    _kill_and_resume(Office(agent, tmp_path, model), 1)


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _kill_and_resume(office: Office, count: int) -> None:
    office.mam.env["IS_SANDBOX"] = "1"  # Claude Code does not believe root otherwise
    office.mam("init")
    office.done("model: say Hello.")  # OpenCode's first start makes its database, which five at once can stop
    jobs = [office.job(STEPS, "--permissions", "full") for _ in range(count)]
    known: dict[str, str] = {}
    while len(known) < count:
        waiting = [job for job in jobs if job not in known]
        known |= _kill_in_the_middle(office, waiting, min(len(waiting), AT_ONCE))
    asked = len(office.model.seen)
    office.model.release()
    with office.at_work("--concurrency", str(AT_ONCE), *LEASE):
        office.wait_until_ended(*jobs)

    ended = [office.record(job) for job in jobs]
    for job in ended:
        about = job["run"]["agent"]
        assert (job["status"], job["result"]) == ("completed", "Done at last."), job["reason"]
        assert about["resumed"] == about["session"] == known[job["job_id"]]
        assert about["tokens"] == {"input": 100, "cached": 11, "output": 22}
    assert sorted((office.here / "effects.txt").read_text().split()) == sorted(jobs)
    answers = len(office.model.seen) - asked
    assert answers == count
    expected = answers * AGENT_FACTS[office.agent].answer_cost
    assert sum(job["run"]["agent"]["cost_usd"] for job in ended) == pytest.approx(expected)


def _kill_in_the_middle(office: Office, jobs: list[str], together: int) -> dict[str, str]:
    """Kills a worker when so many of its agents are in their turns. Returns the sessions that the records name."""
    worker = office.mam.start("worker", "--agent-session", office.agent, "--concurrency", str(together), *LEASE)
    for _ in range(together):
        assert office.model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: len(_sessions(office, jobs)) >= together, "the sessions are not in the records")
    worker.kill()
    worker.communicate()
    return _sessions(office, jobs)


def _sessions(office: Office, jobs: list[str]) -> dict[str, str]:
    """Of the jobs that run now."""
    found = {}
    for job in map(office.record, jobs):
        session = ((job["run"] or {}).get("agent") or {}).get("session")
        if session and job["status"] == "running":
            found[job["job_id"]] = session
    return found
