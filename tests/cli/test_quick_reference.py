"""Seed 000, sections 6 and 7, line by line, in the order written there."""

from __future__ import annotations

import json
import shutil

from tests.cli.command import Mam


def test_every_line_of_the_seed_works(mam: Mam) -> None:
    prompt = "정렬 문제 10개를 만들어 sort_problems.md로 저장…"
    registered = mam(
        "register", "--prompt", prompt, "--agent", "claude-code",
        "--agent-session", "tmux:claude", "--timeout", "3600", "--idle-timeout", "120",
    )  # fmt: skip
    job = registered.line

    table = mam("list")
    assert table.line.split("\t")[:4] == [job, "pending", "claude-code", "tmux:claude"]
    assert prompt in table.out

    records = mam("list", "--json").json
    assert [record["job_id"] for record in records] == [job]

    record = mam("get", "--job", job).json
    assert record == records[0]
    assert record["prompt"] == prompt
    assert (record["timeout_sec"], record["idle_timeout_sec"]) == (3600, 120)
    assert (record["last_seq"], record["auth_token"], record["schema_version"]) == (0, None, 1)
    shown = json.loads((mam.here / f".mam/jobs/{job}.json").read_bytes())
    assert shown.pop("registry")["version"] == 1
    assert record == shown

    assert mam("status", "--job", job, "--set", "completed").line == "completed"

    mam("pick", "--agent-session", "tmux:claude").failed(3, "tmux:claude")
    second = mam("register", "--prompt", "x", "--agent", "a", "--agent-session", "tmux:claude").line
    assert mam("pick", "--agent-session", "tmux:claude").line == second

    timeline = mam("logs", job).out.splitlines()
    assert "registered" in timeline[0]
    assert "pending -> running" in timeline[1]
    assert "running -> completed" in timeline[2]
    assert len(mam("logs", job, "--tail", "20").out.splitlines()) == len(timeline)
    assert mam("logs", job, "--tail", "2").out.splitlines() == timeline[-2:]
    lines = [json.loads(line) for line in mam("logs", job, "--json").out.splitlines()]
    assert [line["event"] for line in lines][:2] == ["registered", "status_changed"]
    listed = [line.split("\t")[:2] for line in mam("logs", "--list").out.splitlines()]
    assert sorted(listed) == sorted([[job, "completed"], [second, "running"]])


def test_the_oldest_job_of_exactly_the_label_comes_first(mam: Mam) -> None:
    first = mam.register("a", "-s", "tmux:claude-a")
    second = mam.register("b", "-s", "tmux:claude-a")
    mam("pick", "--agent-session", "tmux:claude-b").failed(3)
    assert mam("pick", "--agent-session", "tmux:claude-a").line == first
    assert mam("pick", "--agent-session", "tmux:claude-a").line == second
    mam("pick", "--agent-session", "tmux:claude-a").failed(3)


def test_registry_dir_is_accepted_everywhere(mam: Mam) -> None:
    job = mam("register", "x", "--agent", "shell", "--registry-dir", "elsewhere").line
    for words in (("list",), ("get", job), ("status", job), ("explain", job), ("logs", job), ("where",)):
        assert mam(*words, "--registry-dir", "elsewhere").code == 0
        assert mam("--registry-dir", "elsewhere", *words).code == 0
    assert mam("pick", "-s", "shell", "--registry-dir=elsewhere").line == job
    assert not (mam.here / ".mam").exists()


def test_the_history_outlives_the_registry(mam: Mam) -> None:
    job = mam.register()
    shutil.rmtree(mam.here / ".mam/jobs")
    assert "registered" in mam("logs", job[:6]).line
    assert mam("logs", "--list").line.startswith(job)
    mam("get", job).failed(9, "mam init")


def test_an_unknown_status_or_job_changes_nothing(mam: Mam) -> None:
    job = mam.register()
    file = mam.here / f".mam/jobs/{job}.json"
    before = file.read_bytes()
    mam("status", "--job", job, "--set", "banana").failed(1, "banana", "completed")
    assert file.read_bytes() == before
    mam("status", "--job", "nope", "--set", "completed").failed(1, "nope")
    mam("get", "--job", "nope").failed(1, "nope")
