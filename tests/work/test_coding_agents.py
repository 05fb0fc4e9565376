"""A real worker, and programs that print what the real agents printed."""

from __future__ import annotations

import json
import resource
from typing import TYPE_CHECKING

import pytest

from mam import questions
from mam.config.settings import Config
from mam.errors import AgentNotFound
from mam.jobs.pause import Pause
from mam.jobs.question import open_questions
from mam.jobs.question_acts import Answer
from mam.jobs.status import PENDING
from mam.machine.processes import ProcessId
from mam.stores.files.store import FilesStore, create_files_store
from mam.work.adapters import installed_agents, load_adapter
from mam.work.adapters.claude_code import ClaudeCodeAdapter
from mam.work.reports.report import RESULT_LIMIT
from mam.work.workdir import WorkDir
from tests.unit.jobs import running
from tests.waiting import await_that
from tests.work.agent_facts import AGENT_FACTS, PERMITTED, RESUMING, TESTED
from tests.work.replay import PROGRAMS, Replay, recorded
from tests.work.replay_fixtures import files_harness, replay
from tests.work.support import await_gone
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["files_harness", "replay"]


def test_a_recorded_job_is_completed(replay: Replay, harness: Harness) -> None:
    replay.plays(recorded(f"{replay.agent}-write", files=["notes.txt"]))

    job = harness.ended("write the notes", agent=replay.agent, artifacts=["notes.txt"])

    assert (job.status, job.checked) == ("completed", True), job.reason
    assert job.result == "I wrote it."
    assert job.run is not None
    agent_record = job.run["agent"]
    assert agent_record["tokens"] == AGENT_FACTS[replay.agent].tokens
    assert bool(agent_record.get("session")) == AGENT_FACTS[replay.agent].resumes
    assert agent_record["permissions"] == "edit"


def test_the_brief_is_on_no_command_line_of_an_agent_that_reads_stdin(replay: Replay, harness: Harness) -> None:
    reads_stdin = AGENT_FACTS[replay.agent].reads_stdin
    replay.plays(recorded(f"{replay.agent}-write"))

    harness.ended("a secret plan", agent=replay.agent)

    (call,) = replay.calls
    assert ("a secret plan" in str(call["stdin"])) == reads_stdin
    assert ("a secret plan" not in json.dumps(call["argv"])) == reads_stdin


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        ("logged_out", "not_logged_in: "),
        ("unpaid", "billing: "),
        ("declined", "declined: "),
    ],
)
def test_trouble_ends_the_job_with_its_reason(replay: Replay, harness: Harness, scene: str, reason: str) -> None:
    replay.plays(recorded(f"{replay.agent}-{scene}", files=["notes.txt"]))

    job = harness.ended("write", agent=replay.agent, artifacts=["notes.txt"])

    assert job.status == "error"
    assert (job.reason or "").startswith(reason)


def test_an_overloaded_vendor_is_tried_again_later(replay: Replay, harness: Harness) -> None:
    replay.plays(recorded(f"{replay.agent}-overload"))

    job = harness.ended("write", agent=replay.agent)

    assert (job.status, job.waiting_for, job.retries) == ("waiting", "retry", 1)
    assert (job.reason or "").startswith("overloaded: ")


@pytest.mark.parametrize("replay", PERMITTED, indirect=True)
def test_a_denied_tool_is_no_success_even_if_the_agent_claims_it(
    replay: Replay, harness: Harness, tmp_path: Path
) -> None:
    """Codex reports it only in its session file."""
    replay.plays(recorded(f"{replay.agent}-denied", files=["notes.txt"]))
    if replay.agent == "codex":
        _session_file(tmp_path, recorded("codex-denied")["out"])

    job = harness.ended("write", agent=replay.agent, artifacts=["notes.txt"])

    assert job.status == "error"
    assert (job.reason or "").startswith("permission_denied: ")


def _session_file(folder: Path, out: object) -> None:
    started = next(json.loads(line) for line in str(out).splitlines() if "thread.started" in line)
    place = folder / "codex" / "sessions" / "2099" / "01" / "01"
    place.mkdir(parents=True)
    output = "Process exited with code 1\nOutput:\n/bin/bash: line 1: notes.txt: Read-only file system\n"
    line = {"timestamp": "2099-01-01T00:00:00.000Z", "payload": {"type": "function_call_output", "output": output}}
    (place / f"rollout-2099-01-01T00-00-00-{started['thread_id']}.jsonl").write_text(json.dumps(line) + "\n")


def test_exit_0_without_a_last_line_is_an_outcome_of_its_own(replay: Replay, harness: Harness) -> None:
    whole = str(recorded(f"{replay.agent}-write")["out"]).splitlines(keepends=True)
    replay.plays(recorded(f"{replay.agent}-write", out="".join(whole[:-1]), files=["notes.txt"]))

    job = harness.ended("write", agent=replay.agent, artifacts=["notes.txt"])

    assert job.status == "error"
    assert (job.reason or "").startswith("no_final_line: ")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_output_that_stops_in_the_middle_of_a_line_is_no_success(
    replay: Replay, harness: Harness, share: float
) -> None:
    whole = str(recorded(f"{replay.agent}-text")["out"])
    last = whole.rstrip("\n").rfind("\n") + 1
    replay.plays(recorded(f"{replay.agent}-text", out=whole[: last + int((len(whole) - last - 2) * share)]))

    assert harness.ended("say hello", agent=replay.agent).status == "error"


def test_garbage_and_unknown_lines_are_stored_and_skipped(replay: Replay, harness: Harness) -> None:
    out = f'not json\n{{"type":"brand.new","x":[1]}}\n[]\n{recorded(f"{replay.agent}-write")["out"]}'
    replay.plays(recorded(f"{replay.agent}-write", out=out))

    job = harness.ended("write", agent=replay.agent)

    assert job.status == "completed", job.reason
    assert b"not json" in harness.output(job.job_id)
    assert job.run is not None
    assert job.run["agent"]["strange_lines"] == 3


def test_a_hundred_megabytes_in_one_line_cost_the_worker_little(replay: Replay, harness: Harness) -> None:
    replay.plays({**recorded(f"{replay.agent}-write"), "flood": 100})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    job = harness.ended("write", agent=replay.agent)

    assert job.status == "completed", job.reason
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
    assert job.run is not None
    assert job.run["agent"]["strange_lines"] == 1
    assert job.run["output_bytes"] > 100 << 20


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_last_message_of_any_length_is_the_result(replay: Replay, harness: Harness, end: str) -> None:
    """In the line that holds it, and in the line that ends the turn, which one agent makes the same."""
    whole = str(recorded(f"{replay.agent}-text")["out"]).rstrip("\n")
    message = 'ü"\\\n' * (3 << 20) + "the end"
    begin, _, last = whole.rpartition("\n")
    begin, last = (text.replace('"Hello."', json.dumps(message, ensure_ascii=False)) for text in (begin, last))
    last = last[:-1] + ',"more":"' + "y" * (9 << 20) + '"}'
    replay.plays(recorded(f"{replay.agent}-text", out=f"{begin}\n{last}{end}"))

    job = harness.ended("say hello", agent=replay.agent)

    assert job.status == "completed", job.reason
    assert job.result == message[-RESULT_LIMIT:]
    assert job.run is not None
    assert "strange_lines" not in job.run["agent"]


def test_an_agent_killed_by_a_signal_is_no_success(replay: Replay, harness: Harness) -> None:
    replay.plays(recorded(f"{replay.agent}-cut", code=-9))

    job = harness.ended("write", agent=replay.agent)

    assert (job.status, job.reason) == ("error", "ended by signal 9")


def test_an_option_that_an_old_program_does_not_know_is_named(replay: Replay, harness: Harness) -> None:
    scene = recorded(f"{replay.agent}-text", out="", code=2)
    replay.plays({**scene, "err": "error: unknown option '--output-format'\n"})

    job = harness.ended("write", agent=replay.agent)

    assert (job.status, job.reason) == ("error", "exit code 2: error: unknown option '--output-format'")


def test_a_missing_program_names_the_command_that_installs_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for agent in TESTED:
        job = harness.ended("write", agent=agent)
        assert job.status == "error"
        assert "npm install -g" in (job.reason or "")


# -- usage limits -----------------------------------------------------------------------------------------------------


def test_a_limit_pauses_the_agent_and_the_job_that_met_it_is_tried_first(replay: Replay, harness: Harness) -> None:
    replay.plays(AGENT_FACTS[replay.agent].limited(600), recorded(f"{replay.agent}-write", files=["notes.txt"]))
    first, second = (harness.job(f"write {count}", agent=replay.agent) for count in (1, 2))

    harness.drain(labels=(replay.agent,))

    job = harness.get(first)
    assert (job.status, job.waiting_for, job.retries, job.losses) == ("waiting", "reset", 0, 0), job.reason
    assert harness.get(second).status == "pending"
    (pause,) = harness.store.pauses()
    assert (pause.agent, pause.probe) == (replay.agent, first)
    assert "tried first" in " ".join(harness.registry.explain(second)[1])

    harness.registry.set_status(first, PENDING)  # as if its time had come
    harness.drain(labels=(replay.agent,))

    assert [harness.get(one).status for one in (first, second)] == ["completed", "completed"]
    assert harness.store.pauses() == []
    facts = AGENT_FACTS[replay.agent]
    assert all(f"write {count}" in facts.brief_in(call) for call, count in zip(replay.calls, (1, 1, 2), strict=True))
    if facts.resumes:
        session = job.run["agent"]["session"] if job.run else None
        assert session in replay.calls[1]["argv"]  # type: ignore[operator]
        assert session not in replay.calls[2]["argv"]  # type: ignore[operator]


def test_a_pause_that_a_person_made_is_left_alone(replay: Replay, harness: Harness) -> None:
    replay.plays(AGENT_FACTS[replay.agent].limited(600))
    job_id = harness.job("write", agent=replay.agent)
    with harness.at_work(labels=(replay.agent,)):
        await_that(lambda: harness.get(job_id).status == "running", "it does not begin")
        harness.registry.pause(Pause(agent=replay.agent, reason="by hand"))
        await_that(lambda: harness.get(job_id).status == "waiting", "it does not wait")

    assert [(one.reason, one.probe) for one in harness.store.pauses()] == [("by hand", None)]


def test_with_the_switch_off_a_limit_is_an_error(replay: Replay, tmp_path: Path) -> None:
    create_files_store(str(tmp_path / "jobs"))
    harness = Harness(FilesStore(str(tmp_path / "jobs")), tmp_path, Config(on_limit="fail"))
    replay.plays(AGENT_FACTS[replay.agent].limited(600))

    job = harness.ended("write", agent=replay.agent)

    assert job.status == "error"
    assert (job.reason or "").startswith("usage_limit: ")
    assert harness.store.pauses() == []


@pytest.fixture
def starts_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorded program cannot ask, so it is started as for a job that may not. At a limit it is mam that asks."""
    monkeypatch.setattr(ClaudeCodeAdapter, "asking", lambda _adapter, _start: None)


@pytest.mark.parametrize("replay", ["claude-code"], indirect=True)
@pytest.mark.parametrize("answer", ["wait", "retry", "fail", "deny"])
@pytest.mark.usefixtures("starts_as_recorded")
def test_a_person_decides_at_a_limit(replay: Replay, tmp_path: Path, answer: str) -> None:
    """The agent is paused and its job asks; a job that may not ask waits."""
    create_files_store(str(tmp_path / "jobs"))
    harness = Harness(FilesStore(str(tmp_path / "jobs")), tmp_path, Config(on_limit="ask"))
    replay.plays(AGENT_FACTS[replay.agent].limited(600), recorded(f"{replay.agent}-write", files=["notes.txt"]))
    job_id = harness.job("write", agent=replay.agent, may_ask=True)
    with harness.at_work(labels=(replay.agent,)):
        await_that(lambda: open_questions(harness.get(job_id)), "it does not ask")
        (question,) = open_questions(harness.get(job_id))
        assert (question.kind, question.default, question.choices) == ("limit", "wait", ["wait", "retry", "fail"])
        assert [one.agent for one in harness.store.pauses()] == [replay.agent]
        given = Answer(number=1, attempt=1, digest=question.digest, answer=answer, by="anna@pc")
        questions.answer(harness.registry, job_id, given)
        await_that(lambda: harness.get(job_id).status in ("waiting", "error", "completed"), "nothing follows")
    job = harness.get(job_id)
    expected = {"wait": ("waiting", 1), "retry": ("completed", 0), "fail": ("error", 1), "deny": ("error", 1)}
    assert (job.status, len(harness.store.pauses())) == expected[answer]
    assert answer in ("wait", "retry") or (job.reason or "").startswith("usage_limit: ")


@pytest.mark.parametrize("replay", ["claude-code"], indirect=True)
@pytest.mark.usefixtures("starts_as_recorded")
def test_a_worker_that_leaves_takes_its_question_back(replay: Replay, tmp_path: Path) -> None:
    create_files_store(str(tmp_path / "jobs"))
    harness = Harness(FilesStore(str(tmp_path / "jobs")), tmp_path, Config(on_limit="ask"))
    replay.plays(AGENT_FACTS[replay.agent].limited(600))
    job_id = harness.job("write", agent=replay.agent, may_ask=True)
    with harness.at_work(labels=(replay.agent,)):
        await_that(lambda: open_questions(harness.get(job_id)), "it does not ask")
    job = harness.get(job_id)
    assert (job.status, job.questions[0]["state"]) == ("pending", "withdrawn")


# -- others -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replay", RESUMING, indirect=True)
def test_a_cancel_ends_it_and_a_takeover_resumes_its_conversation(replay: Replay, harness: Harness) -> None:
    replay.plays(recorded(f"{replay.agent}-cut", stays=True))
    job_id = harness.job("write", agent=replay.agent)

    def session() -> str | None:
        run = harness.get(job_id).run or {}
        found = run.get("agent", {}).get("session")
        return str(found) if found else None

    with harness.at_work(labels=(replay.agent,)):
        await_that(lambda: session() is not None, "its session is not written down")
    assert harness.get(job_id).status == "pending"
    known = session()

    with harness.at_work(labels=(replay.agent,)):
        await_that(
            lambda: len(replay.calls) == 2 and harness.get(job_id).status == "running", "it does not begin again"
        )
        await_that(lambda: "process" in (harness.get(job_id).run or {}), "it is not written down")
        process = ProcessId.from_json((harness.get(job_id).run or {})["process"]["agent"])
        assert process is not None
        harness.registry.cancel(job_id)
        await_gone([process])
    assert known in replay.calls[1]["argv"]  # type: ignore[operator]


@pytest.mark.parametrize("replay", RESUMING, indirect=True)
def test_a_conversation_that_is_gone_is_started_again(replay: Replay, harness: Harness) -> None:
    replay.plays(
        AGENT_FACTS[replay.agent].limited(600), recorded(f"{replay.agent}-gone"), recorded(f"{replay.agent}-write")
    )  # fmt: skip
    job_id = harness.job("write", agent=replay.agent)
    waited = []
    for _ in range(3):
        harness.drain(labels=(replay.agent,))
        waited.append(harness.get(job_id).waiting_for)
        if harness.get(job_id).status == "waiting":
            harness.registry.set_status(job_id, PENDING)

    assert waited == ["reset", "retry", None]
    assert harness.get(job_id).status == "completed", harness.get(job_id).reason
    told = [" ".join(map(str, call["argv"])) for call in replay.calls]  # type: ignore[call-overload]
    assert [("resume" in words or "--session" in words) for words in told] == [False, True, False]


@pytest.mark.parametrize("agent", PERMITTED)
@pytest.mark.parametrize("permissions", ["ask", "edit", "full"])
def test_rights_are_mapped_and_recorded(
    agent: str, permissions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(agent, tmp_path)
    monkeypatch.setenv("PATH", str(replay.folder))

    launch = load_adapter(agent, Config()).launch(
        running(agent=agent, permissions=permissions, may_ask=False),
        "do it",
        WorkDir(path=str(tmp_path), kind="workdir"),
        "",
    )

    assert launch is not None
    passed = " ".join([*launch.argv, *launch.env.values()])
    assert AGENT_FACTS[agent].permissions[permissions] in passed
    assert launch.agent_record["permissions"] == permissions
    assert ("bypass" in passed or "danger" in passed or '"*": "allow"' in passed) == (permissions == "full")


def test_mam_run_finds_the_one_agent_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert installed_agents(Config()) == []
    replay = Replay("codex", tmp_path)
    monkeypatch.setenv("PATH", str(replay.folder))
    assert installed_agents(Config()) == ["codex"]
    assert PROGRAMS["codex"] == "codex"


def test_an_agent_that_is_not_there_is_refused_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AgentNotFound, match="npm install -g opencode-ai"):
        load_adapter("opencode", Config()).launch(running(), "x", WorkDir(path="/", kind="workdir"), "")
