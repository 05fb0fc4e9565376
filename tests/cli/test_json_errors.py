"""With --json, an error is one JSON object on stderr; the exit code stays the same and stdout stays empty."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from mam.__main__ import load, run
from tests.cli.command import Mam, Ran


def error_of(ran: Ran) -> dict[str, Any]:
    assert ran.out == ""
    (line,) = ran.stderr.splitlines()
    answer = json.loads(line)
    assert list(answer) == ["error"]
    error: dict[str, Any] = answer["error"]
    assert error["exit_code"] == ran.code
    assert list(error)[:3] == ["type", "message", "exit_code"]
    return error


def test_an_unknown_job_is_an_error_object(mam: Mam) -> None:
    mam.register()
    error = error_of(mam("get", "nope", "--json"))
    assert (error["type"], error["exit_code"], error["job"]) == ("UnknownJob", 1, "nope")
    assert f"mam: {error['message']}\n" == mam("get", "nope").stderr


def test_an_ambiguous_prefix_lists_the_candidates(mam: Mam) -> None:
    jobs = sorted(mam.register() for _ in range(17))
    first = next(job[0] for job, other in pairwise(jobs) if job[0] == other[0])
    error = error_of(mam("get", first, "--json"))
    assert (error["type"], error["exit_code"]) == ("AmbiguousId", 6)
    assert error["candidates"] == [job for job in jobs if job.startswith(first)]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("lst", "--json"), "did you mean list?"),
        (("--json", "--frobnicate"), "--frobnicate"),
        (("list", "--jsn", "--json"), "did you mean --json?"),
        (("--json", "list", "--status"), "--status"),
        (("agents", "strat", "--json"), "did you mean start?"),
        (("pick", "--json"), "label"),
    ],
)
def test_wrong_arguments_are_an_error_object(mam: Mam, words: tuple[str, ...], word: str) -> None:
    error = error_of(mam(*words))
    assert (error["type"], error["exit_code"]) == ("BadInput", 2)
    assert word in error["message"]


def test_nothing_to_pick_and_a_lost_claim(mam: Mam) -> None:
    job = mam.register()
    assert error_of(mam("pick", "-s", "other", "--json"))["type"] == "NothingToPick"
    mam("pick", "-s", "shell")
    error = error_of(mam("complete", job, "--attempt", "7", "--json"))
    assert (error["type"], error["exit_code"], error["attempt"]) == ("ClaimLost", 4, 7)


def test_arguments_behind_two_dashes_belong_to_the_command(mam: Mam) -> None:
    mam("run", "--", "no-such-program", "--json").failed(1, "no-such-program")


def test_verbs_for_several_jobs_report_each_error(mam: Mam) -> None:
    job = mam.register()
    ran = mam("cancel", "nope", job, "--json")
    assert ran.code == 1
    assert [one["job_id"] for one in ran.json] == [job]
    assert json.loads(ran.stderr)["error"]["type"] == "UnknownJob"


def test_system_errors_and_bugs_are_error_objects(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(error: Exception) -> int:
        raise error

    monkeypatch.setattr(load("list"), "run", lambda _options: raise_error(OSError(28, "No space left on device", "/x")))
    assert run(["list", "--json"]) == 9
    error = {"type": "SystemError", "message": "/x: No space left on device", "exit_code": 9}
    assert json.loads(capsys.readouterr().err) == {"error": error}
    monkeypatch.setattr(load("list"), "run", lambda _options: raise_error(KeyError("inside")))
    assert run(["list", "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["error"]["type"] == "Bug"


def test_a_hook_prints_nothing(mam: Mam) -> None:
    ran = mam("hook", "--json", "--frobnicate", stdin=b"no JSON")
    assert (ran.code, ran.out, ran.stderr) == (0, "", "")
