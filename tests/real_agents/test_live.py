"""The real programs at their prompts in tmux: jobs are typed in, and their own hooks tell what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real_agents.live import LONGEST, finish
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.live import LiveAgents
    from tests.real_agents.model_server import ModelServer


def answers(count: int) -> dict[str, int]:
    """The tokens of so many answers of the model."""
    return {"input": 100 * count, "cached": 11 * count, "output": 22 * count}


def test_two_live_sessions_do_ten_jobs_and_their_hooks_report_it(live: LiveAgents, model: ModelServer) -> None:
    live.start_agent("claude")
    live.start_agent("codex")
    jobs = {}
    for number in range(5):
        for name in ("claude", "codex"):
            path = f"{name}-{number}.txt"
            steps = (f"write {path} made by {name} {number}", f"say {name} wrote {number}.")
            jobs[live.register(name, *steps, artifact=path)] = (name, number, path)

    workers = {name: live.worker(name, "--drain") for name in ("claude", "codex")}

    for name, worker in workers.items():
        _, said = worker.communicate(timeout=LONGEST)
        assert worker.returncode == 0, (said.decode(), live.shown(name))
    for job_id, (name, number, path) in jobs.items():
        job = live.job(job_id)
        assert (job["status"], job["checked"], job["attempt"]) == ("completed", True, 1), (job, live.shown(name))
        assert job["result"] == f"{name} wrote {number}."
        assert job["run"]["session"]["proof"] == "hook"
        assert job["run"]["turn"]["ended_by"] == "hook"
        assert (live.mam.here / path).read_text("utf-8").strip() == f"made by {name} {number}"
        assert live.state_of(name)["state"] == "done"
        assert live.state_of(name)["source"] == "hook"
        assert job["run"]["agent"]["tokens"] == answers(3)
    assert len(model.seen) == 3 * len(jobs)


@pytest.mark.parametrize("name", ["claude", "opencode"])
def test_a_job_whose_agent_starts_a_subagent_ends_when_all_is_done_and_counts_it(
    live: LiveAgents, model: ModelServer, name: str
) -> None:
    """Claude Code lets it run in the background, stops, and prompts itself when it has ended."""
    live.start_agent(name)
    job_id = live.register(name, "delegate run echo sub >part.txt; say Sub done.", "say All done.", artifact="part.txt")

    finish(live.worker(name, "--drain"))

    job = live.job(job_id)
    assert (job["status"], job["result"]) == ("completed", "All done."), job["reason"]
    assert job["run"]["agent"]["tokens"] == answers(len(model.seen))
    assert len(model.seen) >= 5


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_session_that_was_cleared_between_two_jobs_is_done_and_not_unknown(live: LiveAgents, name: str) -> None:
    live.start_agent(name)
    jobs = [live.register(name, f"say {word}.") for word in ("One", "Two")]

    said = finish(live.worker(name, "--between", "/clear", "--drain"))

    assert [live.job(job_id)["result"] for job_id in jobs] == ["One.", "Two."], said
    assert [live.job(job_id)["run"]["agent"]["tokens"] for job_id in jobs] == [answers(2)] * 2
    root = Path(live.mam("agents", "show", name).json["runtime"]["manifest_path"]).parent
    (log,) = root.glob("hooks-*.jsonl")
    ends = log.read_text("utf-8").count('"SessionEnd"')
    live.mam("agents", "send", name, "/clear")
    await_that(lambda: log.read_text("utf-8").count('"SessionEnd"') > ends, "it was not cleared", LONGEST)
    assert live.state_of(name)["state"] == "done"


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_a_worker_is_killed_and_the_next_one_watches(live: LiveAgents, model: ModelServer, name: str) -> None:
    live.start_agent(name)
    job_id = live.register(name, "hang")
    first = live.worker(name, "--lease", "3")
    assert model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: live.job(job_id).get("run") is not None)
    first.kill()
    first.communicate()
    assert live.state_of(name)["state"] == "working"
    second = live.worker(name, "--lease", "3", "--drain")
    await_that(lambda: live.job(job_id)["attempt"] == 2)
    model.release()

    finish(second)

    job = live.job(job_id)
    assert (job["status"], job["result"], job["attempt"]) == ("completed", "Done at last.", 2)
    assert job["run"]["session"]["mark"] == f"{job_id}.1"
    assert job["run"]["agent"]["tokens"] == answers(len(model.seen))


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_a_job_is_called_off_and_the_session_takes_the_next(live: LiveAgents, model: ModelServer, name: str) -> None:
    live.start_agent(name)
    job_id = live.register(name, "hang")
    worker = live.worker(name)
    assert model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: live.job(job_id).get("run") is not None)

    assert live.mam("cancel", job_id).code == 0
    after = live.register(name, f"write {name}.txt here", "say And now this.", artifact=f"{name}.txt")

    await_that(lambda: live.job(after)["status"] == "completed")
    worker.terminate()
    worker.communicate()
    assert live.job(job_id)["status"] == "cancelled"
    assert live.job(after)["result"] == "And now this."


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_a_session_that_ends_during_its_job_is_a_failure_with_a_reason(
    live: LiveAgents, model: ModelServer, name: str
) -> None:
    live.start_agent(name)
    job_id = live.register(name, "hang", **{"max-retries": "0"})
    worker = live.worker(name)
    assert model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: live.job(job_id).get("run") is not None)

    live.tmux("kill-session", "-t", f"={name}:")

    await_that(lambda: live.job(job_id)["status"] == "error")
    worker.terminate()
    worker.communicate()
    assert live.job(job_id)["reason"] == f"the session {name} ended before the job did"
    assert live.job(job_id)["run"]["turn"]["ended_by"] == "process"
