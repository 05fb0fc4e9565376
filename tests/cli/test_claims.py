"""The verbs of a worker: pick, heartbeat, complete, fail, release, publish, and their fences."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.cli.command import Mam, finish

COMMAND = f"{sys.executable} -m mam"


def claimed(mam: Mam, *words: str) -> str:
    job = mam.register("work", *words)
    assert mam("pick", "-s", "shell").line == job
    return job


def own(job: str, attempt: int) -> dict[str, Any]:
    return {"MAM_JOB_ID": job, "MAM_ATTEMPT": str(attempt)}


def test_pick_prints_the_id_the_record_or_the_environment(mam: Mam) -> None:
    jobs = [mam.register() for _ in range(3)]
    assert mam("pick", "-s", "shell").line == jobs[0]
    record = mam("pick", "-s", "shell", "--json", "--owner", "me", "--lease", "5m").json
    assert (record["job_id"], record["attempt"], record["owner"]) == (jobs[1], 1, "me")
    assert record["lease"]["seconds"] == 300
    assert record["claim_id"] == mam.record(jobs[1])["claim_id"]
    exported = mam("pick", "-s", "shell", "--export").line
    assert exported == f"MAM_JOB_ID={jobs[2]} MAM_ATTEMPT=1 MAM_CLAIM={mam.record(jobs[2])['claim_id']}"
    mam("pick", "-s", "shell", "--json").failed(3, "shell")


@pytest.mark.parametrize("option", ["--label", "--agent-session", "-s", "--label=tmux:x"])
def test_the_label_has_its_old_name_too(mam: Mam, option: str) -> None:
    words = [option] if "=" in option else [option, "tmux:x"]
    job = mam("register", "work", "--agent", "shell", *words).line
    assert mam.record(job)["agent_session"] == "tmux:x"
    mam("pause", *words)
    mam("pick", *words).failed(3, "label tmux:x is paused")
    mam("resume", *words)
    assert [one["job_id"] for one in mam("list", *words, "--json").json] == [job]
    assert mam("pick", *words).line == job


def test_pick_runs_a_command_with_the_claim_in_its_environment(mam: Mam) -> None:
    job = mam.register()
    ran = mam("pick", "-s", "shell", "--", "sh", "-c", f'{COMMAND} complete --result "by $MAM_JOB_ID"; exit 5')
    assert (ran.code, ran.out) == (5, "completed\n"), ran.stderr
    record = mam.record(job)
    assert (record["status"], record["result"], record["attempt"]) == ("completed", f"by {job}", 1)
    mam("pick", "-s", "shell", "--", "touch", "never").failed(3, "shell")
    assert not (mam.here / "never").exists()


def test_a_command_that_cannot_run_leaves_the_job_pending(mam: Mam) -> None:
    job = mam.register()
    mam("pick", "-s", "shell", "--", "./no-such-program").failed(2, "no-such-program", job)
    assert mam.status(job) == "pending"
    assert mam.record(job)["losses"] == 0
    for words in (("--",), ("--export", "--", "true"), ("--json", "--", "true")):
        assert mam("pick", "-s", "shell", *words).code == 2


def test_pick_passes_the_store_to_its_command(mam: Mam) -> None:
    address = f"sqlite://{mam.here}/other.db"
    job = mam("register", "x", "--agent", "shell", "--store", address).line
    script = f'{COMMAND} complete && echo "${{MAM_SOCKET-none}}"'
    ran = mam("pick", "-s", "shell", "--store", address, "--", "sh", "-c", script)
    assert ran.out == "completed\nnone\n", ran.stderr
    assert mam("status", job, "--store", address).line == "completed"


def test_pick_waits_for_a_job_to_come(mam: Mam) -> None:
    mam("init")
    waiting = mam.start("pick", "-s", "shell", "--wait", "50")
    job = mam.register()
    assert finish(waiting).line == job
    mam("pick", "-s", "shell", "--wait", "0.05").failed(3)


@pytest.mark.parametrize("store", [".mam/jobs", "sqlite"])
def test_pick_explains_why_pending_jobs_cannot_be_claimed(mam: Mam, store: str) -> None:
    mam.env["MAM_STORE"] = store if store != "sqlite" else f"sqlite://{mam.here}/jobs.db"
    holder = mam.register("first", "--exclusive", "key", "-s", "other")
    mam("pick", "-s", "shell").failed(3, "No pending job for shell.")
    assert mam("pick", "-s", "other").line == holder
    mam.register("second", "--exclusive", "key", "--priority", "-1000")
    mam("pick", "-s", "shell").failed(3, "may be claimed now", "1 waits for an exclusive key", "mam explain")
    mam.register("third", "--exclusive", "key")
    mam("pick", "-s", "shell").failed(3, "2 wait for an exclusive key")
    mam("worker", "-s", "none", "-s", "shell", "--once").failed(3, "none, shell", "2 wait for an exclusive key")
    mam("pause", "-s", "shell")
    mam("pick", "-s", "shell").failed(3, "label shell is paused")
    mam("worker", "-s", "shell", "--once").failed(3, "label shell is paused")


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("pick",), "--label"),
        (("pick", "-s", ""), "label is empty"),
        (("pick", "-s", "x", "--lease", "0"), "lease"),
        (("pick", "-s", "x", "--lease", "inf"), "--lease"),
        (("pick", "-s", "x", "--owner", ""), "owner is empty"),
        (("fail", "x"), "--reason"),
        (("complete", "x", "--result", "a", "--result-file", "b"), "not both"),
        (("complete", "x", "--attempt", "two"), "'two'"),
        (("complete", "x", "--job", "y"), "takes one job"),
        (("heartbeat",), "give the id"),
        (("status", "x", "--attempt", "1"), "--set"),
        (("publish",), "a job and an event"),
        (("publish", "x"), "a job and an event"),
        (("publish", "x", "banana"), "'banana'"),
        (("publish", "x", "progress", "--data", "[1]"), "JSON object"),
        (("publish", "x", "progress", "--data", "{"), "JSON object"),
    ],
)
def test_a_wrong_option_is_a_usage_error(mam: Mam, words: tuple[str, ...], word: str) -> None:
    mam("init")
    mam(*words).failed(2, word)


def test_complete_with_a_result(mam: Mam) -> None:
    job = claimed(mam)
    assert mam("complete", job, "--attempt", "1", "--result", "42").line == "completed"
    assert mam("result", job).stdout == b"42"
    assert mam("complete", job, "--attempt", "1").line == "completed"
    mam("complete", job, "--attempt", "2").failed(4, "no such attempt")
    mam("fail", job, "--reason", "no").failed(1, "completed", "error")


def test_results_from_files_and_pipes_come_back_byte_for_byte(mam: Mam) -> None:
    answer = "답\x1b[31m\r\n\n"
    first, second = claimed(mam), claimed(mam)
    (mam.here / "answer").write_bytes(answer.encode())
    assert mam("complete", first, "--result-file", "answer", "--json").json["result"] == answer
    assert mam("complete", second, "--result-file", "-", stdin=answer.encode()).line == "completed"
    assert mam("result", first).stdout == mam("result", second).stdout == answer.encode()


def test_a_missing_artifact_refuses_completion_until_it_is_there(mam: Mam) -> None:
    job = claimed(mam, "--artifact", "report.md")
    mam("complete", job).failed(1, "report.md")
    assert mam.status(job) == "running"
    (mam.here / "report.md").write_text("done")
    assert mam("complete", job).line == "completed"
    assert mam.record(job)["checked"] is True


def test_fail_for_good_and_for_now(mam: Mam) -> None:
    job = claimed(mam)
    later = mam("fail", job, "--reason", "net down", "--retryable")
    assert later.line == "waiting"
    assert "retry 1 of 3" in later.stderr
    other = claimed(mam)
    assert mam("fail", other, "--reason", "boom", "--json").json["reason"] == "boom"
    assert mam.status(other) == "error"


def test_a_stale_attempt_is_refused_and_leaves_a_line(mam: Mam) -> None:
    job = claimed(mam)
    assert mam("release", job, "--attempt", "1").line == job
    assert mam("pick", "-s", "shell").line == job
    for words in (("complete",), ("fail", "--reason", "x"), ("heartbeat",), ("publish", "progress")):
        mam(words[0], job, *words[1:], "--attempt", "1").failed(4, "attempt 2 has taken over")
    mam("release", job, "--attempt", "1").failed(4)
    mam("status", job, "--set", "completed", "--attempt", "1").failed(4)
    mam("cancel", job, "--attempt", "1").failed(4)
    assert mam.status(job) == "running"
    assert mam("logs", job).out.count("refused") == 7


def test_heartbeat_renews_the_lease_and_prints_its_end(mam: Mam) -> None:
    job = claimed(mam)
    until = mam("heartbeat", job, "--attempt", "1", "--lease", "2h").line
    assert mam.record(job)["lease"] == {**mam.record(job)["lease"], "expires_at": until, "seconds": 7200}
    pending = mam.register()
    mam("heartbeat", pending).failed(1, "pending")


def test_publish_stores_events_and_prints_their_numbers(mam: Mam) -> None:
    job = mam.register()
    assert mam("publish", job, "started").line == "1"
    assert mam("publish", "--job", job, "progress", "--detail", "반", "--data", '{"percent": 50}').line == "2"
    assert mam("publish", "--detail", "d", job, "progress").line == "3"
    assert mam("publish", job, "completed", "--json").json["status"] == "completed"
    mam("publish", job, "progress").failed(1, "takes no event")
    published = [json.loads(line) for line in mam("logs", job, "--json").out.splitlines()]
    payloads = [line["payload"] for line in published if line["event"] == "published"]
    assert [payload["seq"] for payload in payloads] == [1, 2, 3, 4]
    assert (payloads[1]["detail"], payloads[1]["data"]) == ("반", {"percent": 50})


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ('{"x": NaN}', "NaN"),
        ('{"x": [1e999]}', "too large"),
        ('{"x": -Infinity}', "Infinity"),
        ('{"a":' * 65 + "1" + "}" * 65, "64 levels"),
        ('{"a":' * 980 + "1" + "}" * 980, "levels deep"),
        ('{"a":' + "[" * 5000, "levels deep"),
        ("[]", "JSON object"),
    ],
    ids=["nan", "too large", "infinity", "65 levels", "980 levels", "no end", "no object"],
)
def test_data_that_is_not_for_programs_is_refused(mam: Mam, data: str, word: str) -> None:
    job = mam.register()
    mam("publish", job, "progress", "--data", data).failed(2, word)
    assert mam.record(job)["last_seq"] == 0


def test_data_may_be_64_levels_deep(mam: Mam) -> None:
    job = mam.register()
    data = '{"a":' * 63 + "[]" + "}" * 63
    assert mam("publish", job, "progress", "--data", data).line == "1"
    assert json.loads(mam("logs", job, "--json").out.splitlines()[-1])["payload"]["data"] == json.loads(data)


def test_the_own_job_is_the_default(mam: Mam) -> None:
    job = claimed(mam)
    mine = own(job, 1)
    assert mam("get", **mine).json["job_id"] == job
    assert mam("publish", "progress", **mine).line == "1"
    assert mam("heartbeat", **mine).code == 0
    assert mam("release", **mine).line == job
    assert mam("pick", "-s", "shell").line == job
    mam("complete", **mine).failed(4)
    mam("fail", "--reason", "x", **mine).failed(4)
    assert mam("fail", "--reason", "x", **own(job, 2)).line == "error"


@pytest.mark.parametrize("verb", ["status", "result", "explain", "logs", "cancel", "retry", "wait"])
def test_other_verbs_need_a_job(mam: Mam, verb: str) -> None:
    mam(verb, **own(claimed(mam), 1)).failed(2, "give the id")


def test_the_own_attempt_fences_only_the_own_job(mam: Mam) -> None:
    job, other = claimed(mam), claimed(mam)
    assert mam("release", job).line == job
    assert mam("pick", "-s", "shell").line == job
    stale = own(job, 1)
    mam("complete", job, **stale).failed(4)
    mam("complete", "--job", job[:12], **stale).failed(4)
    assert mam("complete", other, **own(job, 7)).line == "completed"
    assert mam("complete", job, "--attempt", "2", **stale).line == "completed"


def test_the_own_claim_fences_what_the_own_attempt_does(mam: Mam) -> None:
    job = claimed(mam)
    stranger = {**own(job, 1), "MAM_CLAIM": "another"}
    for words in (["complete"], ["fail", "--reason", "x"], ["heartbeat"], ["release"], ["publish", "progress"]):
        mam(*words, **stranger).failed(4, "another claim holds attempt 1")
        mam(words[0], job, *words[1:], "--attempt", "1", **stranger).failed(4, "another claim holds attempt 1")
    for words in (["status", job[:12], "--set", "completed"], ["cancel", job]):
        mam(*words, "--attempt", "1", **stranger).failed(4, "another claim holds attempt 1")
    mam("complete", **{**stranger, "MAM_CLAIM": "not one"}).failed(2, "'not one' is not a claim id")
    mine: dict[str, Any] = dict(pair.split("=") for pair in exported(mam, job).split())
    assert mam("complete", **mine).line == "completed"
    assert mam("complete", **mine).line == "completed"
    assert mam("complete", "--attempt", "2", **{**mine, "MAM_CLAIM": "another", "MAM_ATTEMPT": "1"}).line == "completed"
    mam("complete", **{**mine, "MAM_CLAIM": "another"}).failed(4, "another claim of attempt 2 has ended the job")


def exported(mam: Mam, job: str) -> str:
    """What a shell gets for the next claim of the job."""
    assert mam("release", job).line == job
    return mam("pick", "-s", "shell", "--export").line


def test_the_own_claim_counts_only_with_its_job_and_attempt(mam: Mam) -> None:
    job, other = claimed(mam), claimed(mam)
    mine = {**own(job, 9), "MAM_CLAIM": "another"}
    assert mam("heartbeat", job, "--attempt", "1", **mine).code == 0
    assert mam("heartbeat", other, "--attempt", "1", **{**mine, "MAM_ATTEMPT": "1"}).code == 0
    assert mam("heartbeat", other, **{**mine, "MAM_ATTEMPT": "1"}).code == 0
    assert mam("heartbeat", job, "--attempt", "1", MAM_ATTEMPT="1", MAM_CLAIM="another").code == 0
    assert mam("heartbeat", job, MAM_JOB_ID=job, MAM_CLAIM="another").code == 0
    assert mam("status", job, "--set", "completed", **{**mine, "MAM_ATTEMPT": "1"}).line == "completed"


def test_an_attempt_without_the_own_job_is_ignored(mam: Mam) -> None:
    job = claimed(mam)
    assert mam("complete", job, MAM_ATTEMPT="9").line == "completed"


def test_status_and_cancel_do_not_take_the_own_attempt(mam: Mam) -> None:
    job, other = claimed(mam), claimed(mam)
    assert mam("status", job, "--set", "completed", **own(job, 9)).line == "completed"
    assert mam("cancel", other, **own(other, 9)).line == other


def test_an_empty_name_is_not_the_own_job(mam: Mam) -> None:
    job = claimed(mam)
    mam("complete", "", **own(job, 1)).failed(1, "''")
    mam("release", "", **own(job, 1)).failed(1, "''")
    mam("publish", "", "completed", **own(job, 1)).failed(1, "''")
    assert mam.status(job) == "running"


def test_an_invalid_own_attempt_is_an_error(mam: Mam) -> None:
    job = claimed(mam)
    mam("complete", MAM_JOB_ID=job, MAM_ATTEMPT="one").failed(2, "MAM_ATTEMPT")


def test_writes_without_an_attempt_can_be_forbidden(mam: Mam) -> None:
    job = claimed(mam)
    mam("complete", job, MAM_REQUIRE_ATTEMPT="1").failed(1, "--attempt")
    assert mam("complete", job, "--attempt", "1", MAM_REQUIRE_ATTEMPT="1").line == "completed"


def test_unfenced_writes_are_marked(mam: Mam) -> None:
    job = mam.register()
    assert mam("status", job, "--set", "running").line == "running"
    assert mam("status", job, "--set", "running").line == "running"
    assert mam("status", job, "--set", "pending", "--json").json == {"job_id": job, "status": "pending"}
    mam("status", job, "--set", "waiting").failed(1, "waiting")
    assert mam("logs", job).out.count("unfenced") == 2
    assert "by status" in mam("logs", job).out


def test_completed_by_hand_names_what_is_missing(mam: Mam) -> None:
    job = mam.register("x", "--artifact", "here.md", "--artifact", "gone.md", "--artifact", "lost.md")
    (mam.here / "here.md").write_text("here")

    ran = mam("status", "--job", job, "--set", "completed")

    assert ran.line == "completed"
    assert [line.split()[6] for line in ran.stderr.splitlines()] == ["gone.md", "lost.md"], ran.stderr
