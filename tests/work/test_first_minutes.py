"""The first five minutes of a new user: an empty directory, no settings, and some tries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Mam, finish
from tests.work.support import PATIENCE, await_gone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.work.support import PidPipe


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)


def test_a_new_user_gets_through_the_first_five_minutes(mam: Mam, pids: PidPipe) -> None:
    # What is this? Both ways to ask give the same answer, and it names the first command to try.
    bare, asked = mam(), mam("--help")
    assert bare.code == asked.code == 0
    assert bare.out == asked.out
    assert "mam run" in bare.out
    assert list(mam.here.iterdir()) == [], "asking for help makes nothing"

    # An empty directory has nothing to list, and says how to begin.
    mam("list").failed(9, "mam init", "mam register")

    # The first command: it says where the jobs are kept, shows the output, and ends with the outcome.
    ran = mam("run", "--", "echo", "hi")
    assert (ran.code, ran.out) == (0, "hi\n")
    made, outcome = ran.stderr.splitlines()
    assert made.startswith("mam: created a store at ")
    assert "completed" in outcome
    assert (mam.here / ".mam" / ".gitignore").read_text() == "*\n"

    # What was that? The id is printed alone in the first column, and a prefix will do.
    (line,) = mam("list").out.splitlines()
    job, status = line.split("\t")[:2]
    assert status == "completed"
    assert mam("result", job[:8]).out == "hi"
    assert mam("output", job[:8]).out == "hi\n"
    assert "completed" in mam("logs", job[:8]).out
    assert "completed" in mam("explain", job[:8]).out

    # Something goes wrong: the exit code shows it, the reason is printed once, and the next command is suggested.
    ran = mam("run", "--", "sh", "-c", "echo half; exit 3")
    assert (ran.code, ran.out) == (7, "half\n")
    assert "exit code 3" in ran.stderr
    assert "mam show" in ran.stderr
    failed = mam("list", "--status", "error").out.split("\t")[0]
    assert "mam retry" in mam("explain", failed).out

    # Trying again is a new job, which a worker takes.
    again = mam("retry", failed).line
    assert mam("worker", "-s", "shell", "--once").code == 0
    assert mam.status(again) == "error"

    # Jobs can be handed out first and worked on later.
    first = mam("register", "echo one", "--agent", "shell").line
    second = mam("register", "echo two", "--agent", "shell", "--after", first).line
    assert "waits for job" in mam("explain", second).out
    assert mam("worker", "-s", "shell", "--drain").code == 0
    assert mam("wait", first, second).code == 0
    assert (mam("result", first).out, mam("result", second).out) == ("one", "two")

    # One that takes too long is cancelled, wherever it runs.
    running = mam("run", "-d", "--", "sh", "-c", f"echo $$ > {pids.path}; exec sleep 1000").line
    agent = pids.processes(1)
    assert mam("cancel", running[:8]).line == running
    await_gone(agent)
    assert mam.status(running) == "cancelled"
    assert mam("wait", running).code == 8

    # A person can follow one that runs.
    following = mam("run", "-d", "--", "sh", "-c", f"echo $$ > {pids.path}; echo here").line
    pids.read(1)
    watched = mam.start("output", following, "--follow")
    assert finish(watched).stdout == b"here\n"
    assert mam("wait", following, "--timeout", str(int(PATIENCE))).code == 0


@pytest.mark.parametrize(
    ("words", "code", "suggested"),
    [
        (("lst",), 2, "list"),
        (("run",), 2, "PROMPT"),
        (("run", "fix", "the", "tests"), 2, '"fix the tests"'),
        (("run", "fix the tests"), 2, "--agent"),
        (("run", "--"), 2, "mam run -- make test"),
        (("run", "--agent", "shell", "--prompt", "a", "--", "b"), 2, "not both"),
        (("worker",), 2, "mam worker -s LABEL"),
        (("register", "do it"), 2, "--agent"),
        (("get", "abc"), 9, "mam init"),
        (("run", "--validate", "no-such-script", "--", "true"), 2, "no-such-script"),
        (("run", "--workdir", "nowhere", "--", "true"), 2, "nowhere"),
        (("run", "--", "no-such-program", "-v"), 1, "The program 'no-such-program' was not found"),
        (("run", "-d", "--", "-x"), 1, "The program '-x' was not found"),
        (("run", "--", "./no-such-program", "-v"), 1, "/no-such-program' was not found; nothing was registered"),
        (("run", "-d", "--", "bin/no-such-program"), 1, "/bin/no-such-program' was not found"),
        (("run", "--workdir", "/usr", "--", "bin/no-such-program"), 1, "'/usr/bin/no-such-program' was not found"),
        (("run", "--fresh", "--", "/no/such/program"), 1, "The program '/no/such/program' was not found"),
        (("run", "--", "/etc/passwd"), 1, "'/etc/passwd' cannot be run: it is not executable; nothing was registered"),
        (("run", "--", "/etc/"), 1, "'/etc/' cannot be run: it is a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_are_met_with_a_line_to_type(mam: Mam, words: tuple[str, ...], code: int, suggested: str) -> None:
    mam(*words).failed(code, suggested)
    assert list(mam.here.iterdir()) == [], "a mistake makes nothing"


@pytest.mark.parametrize("command", ["exit", "A=b", "A=/b", "true"])
def test_shell_builtins_and_syntax_run(mam: Mam, command: str) -> None:
    assert mam("run", "--", command).code == 0


def test_a_path_is_that_of_the_place_where_the_job_runs(mam: Mam) -> None:
    """The output of an earlier job, or the content of a future directory, is not known yet."""
    place = mam.here / "place"
    place.mkdir()
    assert mam("run", "--workdir", "place", "--", "sh", "-c", "echo exit 3 > ./made; chmod +x made").code == 0
    made = mam("run", "--workdir", "place", "--", "./made")
    assert (made.code, "exit code 3" in made.stderr) == (7, True)
    first = mam("register", "ln place/made later", "--agent", "shell").line
    later = mam("run", "-d", "--after", first, "--", "./later").line
    assert mam("worker", "-s", "shell", "--once").code == 0
    assert mam("wait", later, "--timeout", str(int(PATIENCE))).code == 7
    ran = mam("run", "--fresh", "--", "./made")
    assert (ran.code, "exit code 127" in ran.stderr) == (7, True)


def test_a_script_that_calls_a_missing_program(mam: Mam) -> None:
    ran = mam("run", "--agent", "shell", "no-such-program")
    assert ran.code == 7
    assert "exit code 127 (a program was not found)" in ran.stderr
