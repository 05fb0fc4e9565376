"""An attempt resumes the conversation of the attempt before, however that one ended."""

from __future__ import annotations

import json
from functools import partial

import pytest

from mam.jobs.resuming import carried, conversation_id, resumable_conversation
from mam.work.brief import brief
from tests.unit.jobs import running
from tests.waiting import await_that
from tests.work.agent_facts import AGENT_FACTS, RESUMING
from tests.work.replay import Replay, recorded
from tests.work.replay_fixtures import files_harness, replay
from tests.work.worker_harness import Harness

__all__ = ["files_harness", "replay"]


def silent(agent: str) -> dict[str, object]:
    return recorded(f"{agent}-cut", out="", stays=True)


@pytest.mark.parametrize("replay", RESUMING, indirect=True)
def test_attempts_that_end_before_their_first_line_keep_the_conversation(replay: Replay, harness: Harness) -> None:
    agent = replay.agent
    replay.plays(recorded(f"{agent}-cut", stays=True), silent(agent), silent(agent), recorded(f"{agent}-write"))
    job_id = harness.job("write the notes", agent=agent)

    with harness.at_work(labels=(agent,)):
        await_that(lambda: conversation_id(harness.get(job_id).run) is not None, "its session is not in the record")
        known = str(conversation_id(harness.get(job_id).run))
        await_that(lambda: (harness.get(job_id).run or {})["agent"].get("briefed"), "no answer is in the record")
    for attempt in (2, 3):
        with harness.at_work(labels=(agent,)):
            await_that(partial(_has_begun, harness, replay, job_id, attempt), "it does not begin")
    harness.drain(labels=(agent,))

    assert harness.get(job_id).status == "completed", harness.get(job_id).reason
    first, *resumed = replay.calls
    assert known not in json.dumps(first["argv"])
    assert len(resumed) == 3
    for call in resumed:
        assert known in json.dumps(call["argv"])
        assert "write the notes" not in AGENT_FACTS[agent].brief_in(call)
    assert "write the notes" in AGENT_FACTS[agent].brief_in(first)


def _has_begun(harness: Harness, replay: Replay, job_id: str, attempt: int) -> bool:
    run = harness.get(job_id).run or {}
    return run.get("attempt") == attempt and "process" in run and len(replay.calls) == attempt


def test_an_attempt_that_cannot_start_its_agent_keeps_the_conversation() -> None:
    agent = {"name": "codex", "session": "s-1"}
    job = running(agent="codex").replace(run={"host": "a", "place": "/x", "agent": agent})
    run = {"attempt": 2, "host": "a", **carried(job, "a")}

    assert resumable_conversation(job.replace(run=run), "a", "/x") == "s-1"
    assert resumable_conversation(job.replace(run=run), "a", "/y") is None
    assert carried(job, "b") == {}


@pytest.mark.parametrize(
    "agent", [None, "text", {}, {"session": 5}, {"session": "-x"}, {"session": "a b"}, {"session": "a", "gone": True}]
)
def test_an_invalid_conversation_id_is_not_resumed(agent: object) -> None:
    assert conversation_id({"agent": agent}) is None
    assert conversation_id(None) is None


def test_the_brief_of_a_conversation_that_has_it_is_not_sent_again() -> None:
    job = running(agent="codex", prompt="write the notes")

    text = brief(job, resumes=True)

    assert "write the notes" in brief(job)
    assert "write the notes" not in text
    assert "continues" in text
    assert job.job_id in text
