"""Claude Code at its prompt in tmux asks a person: the first answer wins, at the keyboard or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real_agents.live import LONGEST, finish
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.live import LiveAgents

WRITE = ("write notes.txt it was me", "say I wrote it.")


@pytest.fixture
def asking(live: LiveAgents) -> LiveAgents:
    live.start_agent("claude", "--permission-mode", "default")
    return live


def question_of(live: LiveAgents, job: str, attempt: int = 1) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def look() -> bool:
        every = live.mam("questions", "--json").json
        found[:] = [one for one in every if one["job_id"] == job and one["attempt"] == attempt]
        return bool(found)

    await_that(look, "no question", LONGEST)
    return found[-1]


def shows_dialog(live: LiveAgents) -> bool:
    return "Do you want to create" in live.shown("claude")


def test_an_answer_from_elsewhere_closes_the_dialog(asking: LiveAgents) -> None:
    job = asking.register("claude", *WRITE, artifact="notes.txt")
    worker = asking.worker("claude", "--drain")
    question = question_of(asking, job)
    assert "it was me" in str(question["input"])
    await_that(lambda: shows_dialog(asking), "no dialog", LONGEST)

    assert asking.mam("answer", question["id"], "allow").code == 0

    said = finish(worker)
    ended = asking.job(job)
    assert (ended["status"], ended["result"]) == ("completed", "I wrote it."), said
    assert (asking.mam.here / "notes.txt").read_text() == "it was me\n"
    assert not shows_dialog(asking)
    assert [one["state"] for one in ended["questions"]] == ["answered"]


def test_the_model_follows_the_reason_of_a_denial(asking: LiveAgents) -> None:
    job = asking.register("claude", *WRITE, artifact="other.txt")
    worker = asking.worker("claude", "--drain")
    first = question_of(asking, job)
    instead = "use another name.\nmodel: write other.txt instead\nmodel: say I took another name."

    assert asking.mam("answer", first["id"], "deny", "--reason", instead).code == 0
    await_that(lambda: asking.job(job)["questions"][-1]["number"] == 2, "no second question", LONGEST)
    second = question_of(asking, job)
    assert "other.txt" in str(second["input"])
    assert asking.mam("answer", second["id"], "allow").code == 0

    said = finish(worker)
    ended = asking.job(job)
    assert (ended["status"], ended["result"]) == ("completed", "I took another name."), said
    assert not (asking.mam.here / "notes.txt").exists()


def test_an_answer_at_the_keyboard_withdraws_the_question(asking: LiveAgents) -> None:
    job = asking.register("claude", *WRITE, artifact="notes.txt")
    worker = asking.worker("claude", "--drain")
    question = question_of(asking, job)
    await_that(lambda: shows_dialog(asking), "no dialog", LONGEST)

    asking.tmux("send-keys", "-t", "=claude:", "Enter")

    said = finish(worker)
    ended = asking.job(job)
    assert ended["status"] == "completed", said
    assert [one["state"] for one in ended["questions"]] == ["withdrawn"]
    assert asking.mam("answer", question["id"], "deny").code == 4


def test_a_question_with_choices_is_answered_from_elsewhere(asking: LiveAgents) -> None:
    job = asking.register("claude", "ask Which colour?", "say So it is.")
    worker = asking.worker("claude", "--drain")
    question = question_of(asking, job)
    assert (question["kind"], question["choices"]) == ("question", ["Yes", "No"])

    assert asking.mam("answer", question["id"], "No").code == 0

    said = finish(worker)
    assert (asking.job(job)["status"], asking.job(job)["result"]) == ("completed", "So it is."), said


def test_the_hook_outlives_a_killed_worker_and_the_next_one_asks_again(asking: LiveAgents) -> None:
    job = asking.register("claude", *WRITE, artifact="notes.txt")
    first_worker = asking.worker("claude", "--lease", "4")
    first = question_of(asking, job)
    first_worker.kill()
    first_worker.communicate()

    worker = asking.worker("claude", "--lease", "15", "--drain")
    second = question_of(asking, job, attempt=2)
    assert second["id"] != first["id"]
    assert asking.mam("answer", first["id"], "allow").code == 4
    assert not (asking.mam.here / "notes.txt").exists()
    assert asking.mam("answer", second["id"], "allow").code == 0

    said = finish(worker)
    ended = asking.job(job)
    assert (ended["status"], ended["attempt"]) == ("completed", 2), said
    assert (asking.mam.here / "notes.txt").read_text() == "it was me\n"


def test_a_job_that_may_not_ask_leaves_the_dialog_to_the_keyboard(asking: LiveAgents) -> None:
    prompt = "\n".join(f"model: {step}" for step in WRITE)
    job = asking.mam("register", prompt, "--agent", "claude-code", "--agent-session", "tmux:claude", "--no-ask").line
    worker = asking.worker("claude", "--drain")
    await_that(lambda: shows_dialog(asking), "no dialog", LONGEST)
    assert asking.mam("questions", "--json").json == []

    asking.tmux("send-keys", "-t", "=claude:", "Enter")

    said = finish(worker)
    assert asking.job(job)["status"] == "completed", said
