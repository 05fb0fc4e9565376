from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.command import Mam

MEBIBYTE = 1024 * 1024


def test_register_prints_the_id_and_reports_a_new_store(mam: Mam) -> None:
    ran = mam("register", "do it", "--agent", "shell")
    assert len(ran.line) == 32
    assert ran.stderr == f"mam: created a store at {mam.here}/.mam/jobs\n"
    assert (mam.here / ".mam/.gitignore").read_text() == "*\n"
    assert (mam.here / ".mam/jobs").stat().st_mode & 0o777 == 0o700
    assert mam("register", "again", "--agent", "shell").stderr == ""


def test_every_choice_reaches_the_record(mam: Mam) -> None:
    work = mam.here / "work"
    work.mkdir()
    record = mam(
        "register", "--prompt", "p", "--agent", "codex", "-s", "tmux:codex", "--timeout", "10m", "--idle-timeout", "0",
        "--artifact", "a.md", "--artifact", "b/c.md", "--priority", "-5", "--max-retries", "1", "--key", "k",
        "--workdir", "work", "--json",
    ).json  # fmt: skip
    assert (record["agent"], record["agent_session"], record["prompt"]) == ("codex", "tmux:codex", "p")
    assert (record["timeout_sec"], record["idle_timeout_sec"]) == (600, 0)
    assert record["expected_artifacts"] == ["a.md", "b/c.md"]
    assert (record["priority"], record["max_retries"], record["key"]) == (-5, 1, "k")
    assert record["workdir"] == str(work)
    assert record["origin_host"] == os.uname().nodename
    assert record["status"] == "pending"


def test_the_record_has_the_documented_defaults(mam: Mam) -> None:
    record = mam.record(mam.register())
    assert (record["timeout_sec"], record["idle_timeout_sec"], record["agent_session"]) == (3600, 120, "shell")
    assert record["workdir"] == str(mam.here)


def test_higher_priority_is_picked_first(mam: Mam) -> None:
    low, high = mam.register("a"), mam.register("b", "--priority", "5")
    assert [mam("pick", "-s", "shell").line, mam("pick", "-s", "shell").line] == [high, low]


def test_a_start_time_makes_it_wait(mam: Mam) -> None:
    for at in ("+2h", "2d", "2099-01-01T00:00:00Z", "2099-01-01T00:00:00+09:00"):
        job = mam.register("later", "--at", at)
        assert mam.record(job)["status"] == "waiting"
        assert mam.record(job)["waiting_for"] == "time"
    assert mam.record(mam.register("now", "--at", "2001-01-01T00:00:00Z"))["status"] == "pending"


@pytest.mark.parametrize(
    ("at", "word"),
    [
        ("2099-01-01T00:00:00", "time zone"),
        ("2099-02-30T00:00:00Z", "not a time"),
        ("tomorrow", "not a time"),
        ("-2h", "--at"),
        ("", "not a time"),
        ("nan", "not a time"),
    ],
)
def test_a_bad_start_time_makes_nothing(mam: Mam, at: str, word: str) -> None:
    mam("register", "x", "--agent", "shell", "--at", at).failed(2, word)
    assert not (mam.here / ".mam").exists()


def test_the_same_key_gives_the_same_job(mam: Mam) -> None:
    first = mam.register("x", "--key", "k1")
    again = mam("register", "x", "--agent", "shell", "--key", "k1")
    assert again.line == first
    assert "k1" in again.stderr
    assert "another prompt" not in again.stderr
    other = mam("register", "y", "--agent", "shell", "--key", "k1")
    assert other.line == first
    assert "another prompt" in other.stderr
    assert mam.record(first)["prompt"] == "x"
    assert len(mam("list", "--json").json) == 1


def test_prompts_from_files_and_pipes_are_kept_byte_for_byte(mam: Mam) -> None:
    text = "첫 줄\n\tsecond\r\n끝\n"
    (mam.here / "task.md").write_bytes(text.encode())
    from_file = mam("register", "--prompt-file", "task.md", "--agent", "shell").line
    from_pipe = mam("register", "--prompt-file", "-", "--agent", "shell", stdin=text.encode()).line
    assert mam.record(from_file)["prompt"] == mam.record(from_pipe)["prompt"] == text


def test_a_mebibyte_is_taken_and_64_are_not(mam: Mam, tmp_path: Path) -> None:
    big, huge = tmp_path / "big", tmp_path / "huge"
    big.write_bytes(b"x" * MEBIBYTE)
    huge.write_bytes(b"x" * (64 * MEBIBYTE))
    job = mam("register", "--prompt-file", str(big), "--agent", "shell").line
    assert len(mam.record(job)["prompt"]) == MEBIBYTE
    piped = mam("register", "--prompt-file", "-", "--agent", "shell", stdin=big.read_bytes()).line
    assert len(mam.record(piped)["prompt"]) == MEBIBYTE
    mam("register", "--prompt-file", str(huge), "--agent", "shell").failed(2, "bytes")
    with huge.open("rb") as stdin:
        refused = mam("register", "--prompt-file", "-", "--agent", "shell", stdin=stdin.read())
    refused.failed(2, "bytes")
    assert len(mam("list", "--json").json) == 2


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ((), "PROMPT"),
        (("a", "--prompt", "b"), "only one prompt"),
        (("a", "--prompt-file", "b"), "only one prompt"),
        (("a", "b"), "'b'"),
        (("",), "prompt is empty"),
        (("  \n ",), "prompt is empty"),
        (("x", "-s", ""), "label is empty"),
        (("x", "-s", "l" * 300), "label"),
        (("x", "-s", "a\x1bb"), "control character"),
        (("x", "--key", ""), "key is empty"),
        (("x", "--timeout", "-1"), "--timeout"),
        (("x", "--timeout", "1.5"), "whole number"),
        (("x", "--timeout", "nan"), "--timeout"),
        (("x", "--timeout", "99999999999"), "--timeout"),
        (("x", "--priority", "1001"), "priority"),
        (("x", "--priority", "high"), "'high'"),
        (("x", "--max-retries", "-1"), "retries"),
        (("x", "--artifact", "../x"), "'../x'"),
        (("x", "--artifact", "/etc/passwd"), "relative"),
        (("x", "--artifact", ""), "artifact"),
        (("x", "--exclusive", ""), "exclusive key is empty"),
        (("x", "--after", ""), "--after"),
        (("x", "--after", " "), "--after"),
        (("x", "--after", "3fa2b1c9,"), "--after"),
        (("x", "--after", "3fa2b1c9", "--after", ""), "--after"),
        (("x", "--workdir", ""), "--workdir"),
        (("x", "--workdir", "nowhere"), "nowhere"),
        (("--prompt-file", "nowhere.md"), "nowhere.md"),
        (("--prompt-file", "."), "directory"),
        (("--prompt-file",), "--prompt-file"),
    ],
)
def test_bad_input_is_refused_before_anything_is_made(mam: Mam, words: tuple[str, ...], word: str) -> None:
    mam("register", *words, "--agent", "shell").failed(2, word)
    assert not (mam.here / ".mam").exists()


def test_nul_and_broken_utf8_are_refused(mam: Mam) -> None:
    mam("register", "--prompt-file", "-", "--agent", "shell", stdin=b"a\0b").failed(2, "NUL")
    mam("register", "--prompt-file", "-", "--agent", "shell", stdin=b"a\xffb").failed(2, "UTF-8", "byte 1")
    mam("register", os.fsdecode(b"a\xffb"), "--agent", "shell").failed(2, "UTF-8")
    assert not (mam.here / ".mam").exists()


def test_an_agent_is_needed_unless_the_settings_name_one(mam: Mam) -> None:
    mam("register", "x").failed(2, "--agent")
    mam("register", "x", "--agent", "").failed(2, "agent is empty")
    job = mam("register", "x", MAM_DEFAULT_AGENT="codex").line
    assert mam.record(job)["agent"] == "codex"


def test_the_working_directory_is_gone(mam: Mam) -> None:
    import subprocess
    import sys

    gone = mam.here / "gone"
    gone.mkdir()
    script = f"import os, sys; os.rmdir({str(gone)!r}); os.execv(sys.executable, [sys.executable, '-m', 'mam', 'list'])"
    ran = subprocess.run([sys.executable, "-c", script], cwd=gone, env=mam.env, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "no longer exists" in ran.stderr
    assert "Traceback" not in ran.stderr
