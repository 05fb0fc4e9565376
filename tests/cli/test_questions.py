"""`mam questions`, `mam answer` and `mam ask`, as a person and a script use them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.command import finish

if TYPE_CHECKING:
    from tests.cli.command import Mam


def asking(mam: Mam, *words: str) -> str:
    """A running job that asks."""
    job = mam.register()
    assert mam("pick", "-s", "shell").line == job
    asked = mam("ask", *(words or ("Which database?", "--choice", "sqlite", "--choice", "postgres")),
                MAM_JOB_ID=job, MAM_ATTEMPT="1")  # fmt: skip
    assert asked.line == f"{job}.1"
    return job


def test_a_question_is_listed_explained_and_answered(mam: Mam) -> None:
    job = asking(mam)
    (row,) = mam("questions").out.splitlines()
    assert row.split("\t")[0] == f"{job[:8]}.1"
    assert row.endswith("question\tWhich database?")
    assert f"It asks a person: Which database? `mam answer {job[:8]}.1`" in mam("explain", job).out
    (found,) = mam("questions", "--json").json
    assert (found["id"], found["choices"], found["attempt"]) == (f"{job}.1", ["sqlite", "postgres"], 1)
    mam("answer", job, "oracle").failed(2, "none of the choices", "sqlite, postgres")
    assert mam("answer", job[:10], "postgres", "--reason", "we have one").line == f"{job[:8]}.1 postgres"
    question = mam.record(job)["questions"][0]
    assert (question["answer"], question["reason"], question["state"]) == ("postgres", "we have one", "answered")
    assert "@" in question["answered_by"]
    mam("answer", f"{job}.1", "sqlite").failed(4, "was answered by", "postgres")
    assert mam("questions").out == ""
    assert "answered        question 1" in mam("logs", job).out


def test_a_job_for_a_person_is_answered_like_a_question(mam: Mam) -> None:
    report = mam("register", "Look at the report", "--agent", "human", "--artifact", "notes").line
    (row,) = mam("questions").out.splitlines()
    assert (row.split("\t")[0], row.split("\t")[4:]) == (report[:8], ["job", "Look at the report"])
    mam("answer", report).failed(2, "give the answer")
    mam("answer", report, "fine").failed(1, "notes")
    assert mam.status(report) == "pending"
    (mam.here / "notes").write_text("x")
    assert mam("answer", report[:8], "fine", "so", "far").line == "completed"
    assert mam("result", report).line == "fine so far"
    mam("answer", report, "again").failed(4, "is completed")
    other = mam("register", "And this", "--agent", "human").line
    assert mam("answer", other, "deny", "--reason", "no time").line == "error"
    assert mam.record(other)["reason"].endswith(": no time")
    assert mam("questions").out == ""


def test_a_terminal_shows_the_whole_question_before_the_answer(mam: Mam) -> None:
    job = asking(mam, "Which?" + "x" * 300, "--choice", "sqlite")
    ran = mam.on_terminal("answer", job, "sqlite", columns=80)
    shown = ran.out.replace("↳", "").replace(" ", "").replace("\n", "")
    assert "Which?" + "x" * 300 in shown
    assert "Choices:" in ran.out
    assert ran.out.splitlines()[-1] == f"{job[:8]}.1 sqlite"


def test_explain_and_show_have_the_whole_question(mam: Mam) -> None:
    job = asking(mam, "Which?\nThere are \u202emany.")
    assert "running (asks)" in mam("show", job).out
    assert "running (asks)" in mam.on_terminal("list").out
    for verb in ("explain", "show"):
        assert "There are \\u202emany." in mam(verb, job).out
    assert mam("explain", job, "--json").json["questions"][0]["text"] == "Which?\nThere are \u202emany."


def test_an_answer_names_what_was_shown(mam: Mam) -> None:
    job = asking(mam)
    mam("answer", job, "sqlite", "--digest", "0" * 64).failed(4, "not the question that was shown")
    digest = mam("questions", "--json").json[0]["digest"]
    assert mam("answer", job, "sqlite", "--digest", digest).code == 0


def test_bad_questions_and_answers_change_nothing(mam: Mam) -> None:
    job = asking(mam)
    before = mam("get", job).out
    mam("answer", job).failed(2, "give the answer", "sqlite|postgres")
    mam("answer", f"{job}.2", "x").failed(1, "no question '2'")
    mam("answer", "f" * 32, "x").failed(1, "No job")
    mam("ask", " ", "--job", job, "--attempt", "1").failed(2, "empty")
    mam("ask", "x", "--job", job).failed(1, "--attempt")
    mam("ask", "x", "--job", job, "--attempt", "2").failed(4, "Attempt 2")
    mam("ask", "x", "--job", job, "--attempt", "1", "--choice", "a", "--default", "b").failed(2, "none of the choices")
    assert mam("get", job).out == before


def test_a_job_inside_an_agent_cannot_answer(mam: Mam) -> None:
    job = asking(mam)
    mam("answer", job, "sqlite", MAM_SOCKET="x").failed(1, "only a person")
    mam("answer", job, "sqlite", MAM_STORE_MARK="x").failed(1, "only a person")
    hidden = f"env -u MAM_STORE_MARK {sys.executable} -m mam answer {job} sqlite; exit $?"
    ran = subprocess.run(
        ["sh", "-c", hidden], env={**mam.env, "MAM_STORE_MARK": "x"}, cwd=mam.here, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (1, ""), "an ancestor is an agent's process"
    assert "only a person" in ran.stderr
    assert len(mam("questions", "--json").json) == 1


def test_a_script_waits_for_the_answer(mam: Mam) -> None:
    job = asking(mam)
    waiter = mam.start("ask", "And now?", "--job", job, "--attempt", "1", "--wait")
    watcher = mam.start("questions", "--watch", "--json")
    assert watcher.stdout is not None
    with watcher:
        first, second = (json.loads(watcher.stdout.readline()) for _ in range(2))
        watcher.kill()
    assert [first["text"], second["text"]] == ["Which database?", "And now?"]
    mam("answer", job, "x").failed(1, "several open questions", f"{job[:8]}.1", f"{job[:8]}.2")
    assert mam("answer", f"{job}.2", "go", "on").code == 0
    assert finish(waiter).line == "go on"


def test_waiting_ends_with_the_time_or_the_attempt(mam: Mam) -> None:
    job = asking(mam)
    mam("ask", "x", "--job", job, "--attempt", "1", "--wait", "--timeout", "0").failed(5, "is not answered")
    waiter = mam.start("ask", "y", "--job", job, "--attempt", "1", "--wait")
    while len(mam("questions", "--json").json) < 3:
        pass
    mam("cancel", job)
    finish(waiter).failed(4, "was withdrawn")
    deadline = asking(mam, "Quick?", "--deadline", "0s", "--default", "deny")
    assert mam("questions").out == ""
    assert mam.record(deadline)["questions"][0]["decided"] == "deadline"


def test_the_text_of_a_question_cannot_control_a_terminal(mam: Mam) -> None:
    job = asking(mam, "ok\x1b[2J\u202egnp")
    ran = mam.on_terminal("questions")
    assert "\x1b[2J" not in ran.out
    assert r"\x1b[2J\u202egnp" in ran.out
    assert job[:8] in ran.out
