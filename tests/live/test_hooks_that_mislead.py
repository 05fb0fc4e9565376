"""Hooks that lie, come late, twice, or are huge: never is a job lost, or called done, by one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.live.harness import LiveHarness
from tests.waiting import await_that

pytestmark = pytest.mark.external

OTHER = json.dumps({"prompt_id": "another-turn", "last_assistant_message": "a lie"})


def test_the_end_of_another_turn_ends_nothing(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    job_id = harness.register(f"agent: hook Stop {OTHER}\nagent: await {gate}\nagent: say the truth")
    worker = harness.work("--drain")
    await_that(lambda: harness.job(job_id).get("run") is not None)
    assert harness.job(job_id)["status"] == "running"
    gate.touch()
    worker.communicate(timeout=60)

    assert harness.job(job_id)["result"] == "the truth"


def test_a_hook_of_an_earlier_job_that_comes_late_does_not_end_the_next(harness: LiveHarness) -> None:
    harness.agent()
    first = harness.register("agent: say one")
    harness.drain()
    turn = harness.job(first)["run"]["turn"]["name"]
    gate = harness.folder / "gate"
    late = json.dumps({"prompt_id": turn, "last_assistant_message": "one again"})
    second = harness.register(f"agent: hook Stop {late}\nagent: await {gate}\nagent: say two")
    worker = harness.work("--drain")
    await_that(lambda: harness.job(second).get("run") is not None)
    assert harness.job(second)["status"] == "running"
    gate.touch()
    worker.communicate(timeout=60)

    assert (harness.job(first)["result"], harness.job(second)["result"]) == ("one", "two")


def test_a_turn_that_waits_for_what_it_started_has_not_ended(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    paused = json.dumps({"background_tasks": [{"id": "1"}], "last_assistant_message": "soon"})
    job_id = harness.register(f"agent: hook Stop {paused}\nagent: await {gate}\nagent: say now")
    worker = harness.work("--drain")
    await_that(lambda: harness.job(job_id).get("run") is not None)
    assert harness.job(job_id)["status"] == "running"
    gate.touch()
    worker.communicate(timeout=60)

    assert harness.job(job_id)["result"] == "now"


@pytest.mark.parametrize(
    ("failure", "status"), [("overloaded", "waiting"), ("authentication_failed", "error"), ("billing_error", "error")]
)
def test_a_turn_that_failed_is_a_failure(harness: LiveHarness, failure: str, status: str) -> None:
    harness.agent()
    job_id = harness.register(f"agent: fail {failure}")

    harness.work("--once").communicate(timeout=60)

    job = harness.job(job_id)
    assert (job["status"], job["reason"]) == (status, f"its turn ended with {failure}")


def test_a_usage_limit_pauses_the_agent_and_costs_the_job_nothing(harness: LiveHarness) -> None:
    harness.agent()
    told = json.dumps({"error": "rate_limit", "last_assistant_message": "You've hit your limit. Try again in 2h."})
    job_id = harness.register(f"agent: hook StopFailure {told}\nagent: stay")

    harness.work("--once").communicate(timeout=60)

    job = harness.job(job_id)
    assert (job["status"], job["waiting_for"], job["retries"]) == ("waiting", "reset", 0)
    assert "hit your limit" in job["reason"]
    (pause,) = harness.mam("pause", "--list", "--json").json
    assert (pause["agent"], pause["probe"]) == ("claude-code", job_id)


def test_an_agent_that_may_run_nothing_reports_in_text(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: say CANNOT BE DONE: the file is not there")

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["reason"]) == ("error", "the file is not there")


def test_a_missing_artifact_is_an_error_even_if_the_hooks_report_success(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: say I did it", "--artifact", "notes.txt")

    harness.drain()

    job = harness.job(job_id)
    assert job["status"] == "error"
    assert "notes.txt" in job["reason"]


def test_a_hook_of_ten_megabytes_is_recorded_like_any_other(harness: LiveHarness) -> None:
    generation = harness.agent()
    root = next(harness.agents.glob("sessions/*"))
    huge = {"hook_event_name": "PermissionRequest", "tool_name": "Write", "tool_input": {"content": "x" * 10_000_000}}
    start = {"hook_event_name": "UserPromptSubmit", "prompt": "hello", "prompt_id": "one"}
    for given in (start, {**huge, "prompt_id": "one"}):
        _hook(harness, str(root), generation, json.dumps(given).encode())

    state = harness.status("claude")["state"]
    assert (state["state"], state["source"], state["why"]) == ("needs permission", "hook", "Write")
    log = root / f"hooks-{generation}.jsonl"
    assert log.stat().st_size < 10_000
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "nonsense", [b"", b"{", b"[]", b"null", b'{"hook_event_name": 7}', b"\xff\xfe", b"[" * 100_000]
)
def test_nonsense_is_silently_nothing(harness: LiveHarness, nonsense: bytes) -> None:
    generation = harness.agent()
    root = next(harness.agents.glob("sessions/*"))

    _hook(harness, str(root), generation, nonsense)

    assert harness.status("claude")["state"]["state"] == "done"


def test_a_hook_writes_into_nothing_but_a_file_of_its_own(harness: LiveHarness) -> None:
    generation = harness.agent()
    victim = harness.folder / "victim"
    victim.write_text("mine", "utf-8")
    place = harness.folder / "place"
    place.mkdir()
    (place / f"hooks-{generation}.jsonl").symlink_to(victim)
    (place / "hooks-other.jsonl").hardlink_to(victim)
    given = json.dumps({"hook_event_name": "Stop"}).encode()

    for one in (generation, "other", "../escape"):
        _hook(harness, str(place), one, given)
    _hook(harness, "relative", generation, given)

    assert victim.read_text("utf-8") == "mine"
    assert sorted(os.listdir(place)) == [f"hooks-{generation}.jsonl", "hooks-other.jsonl"]


def _hook(harness: LiveHarness, root: str, generation: str, given: bytes) -> None:
    env = {**harness.mam.env, "MAM_SESSION_DIR": root, "MAM_GENERATION": generation}
    ran = subprocess.run(
        [sys.executable, "-m", "mam", "hook", "claude-code"], input=given, env=env, capture_output=True, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_a_question_that_comes_together_with_another_hook_is_published(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: await {gate}\nagent: ask_at_once".replace("{gate}", str(harness.folder / "gate")))
    worker = harness.work("--drain")
    await_that(lambda: harness.job(job_id).get("run") is not None)
    (harness.folder / "gate").touch()

    await_that(lambda: any(event["event"] == "permission_required" for event in harness.events(job_id)))
    assert harness.mam("explain", job_id, "--json").json["state"]["state"] == "needs permission"
    harness.tmux("send-keys", "-t", "=claude:", "Enter")
    worker.communicate(timeout=60)
    assert harness.job(job_id)["status"] == "completed"


def test_lines_that_no_hook_of_ours_wrote_are_passed_over(harness: LiveHarness) -> None:
    """The agent can write into the file of its hooks, where each field has its kind."""
    generation = harness.agent()
    root = os.path.dirname(harness.mam("agents", "show", "claude").json["runtime"]["manifest_path"])
    with open(os.path.join(root, f"hooks-{generation}.jsonl"), "a", encoding="utf-8") as file:
        for odd in ('"turn": [[1]]', '"turn": {}', '"transcript_path": 5', '"mark": []', f'"at_ms": 1{"0" * 200}'):
            file.write(f'{{"at_ms": 1, "agent": "claude-code", "hook_event_name": "Stop", {odd}}}\n')
        file.write('{"at_ms": 1, "hook_event_name": ' + "[" * 100_000 + "\n")
    assert harness.mam("agents", "list").code == 0
    job_id = harness.register("agent: say done")
    harness.drain()

    assert harness.job(job_id)["result"] == "done"


def test_a_last_message_that_no_store_holds_is_kept_without_its_odd_characters(harness: LiveHarness) -> None:
    harness.agent()
    odd = json.dumps({"last_assistant_message": "a\0b\ud800c"})
    job_id = harness.register(f"agent: hook Stop {odd}")
    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["result"]) == ("completed", "a\ufffdb?c")
