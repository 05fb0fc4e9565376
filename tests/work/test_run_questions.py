"""`mam run` and `mam output --follow` show what the agent asks a person, and a key answers it."""

from __future__ import annotations

import sys
import termios
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.terminal import CTRL_C, CTRL_Z, Terminal
from tests.waiting import await_that
from tests.work.asking_programs import PROGRAMS
from tests.work.worker_commands import ended, no_process_left, plain_fixture

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam

__all__ = ["no_process_left", "plain_fixture"]

pytestmark = pytest.mark.external
KEYS = "[a] allow  [d] deny  [A] always"


@pytest.fixture(params=PROGRAMS)
def agent(request: pytest.FixtureRequest, plain: Mam, tmp_path: Path) -> str:
    """It asks for `npm test`."""
    return installed(str(request.param), plain, tmp_path)


def installed(agent: str, mam: Mam, folder: Path) -> str:
    name, script = PROGRAMS[agent]
    programs = folder / "bin"
    programs.mkdir()
    (programs / name).write_text(f"#!{sys.executable} -ISu\n{script}", encoding="utf-8")
    (programs / name).chmod(0o755)
    mam.env["PATH"] = f"{programs}:{mam.env['PATH']}"
    mam.env.pop("CI", None)
    return agent


def running(mam: Mam, agent: str) -> Terminal:
    return Terminal(mam._argv(("run", "do it", "--agent", agent)), mam.here, mam.env, columns=90)


def only_job(mam: Mam) -> dict[str, Any]:
    (job,) = mam("list", "--json").json
    return mam.record(job["job_id"])


def test_a_key_answers_the_question_that_is_shown_whole(plain: Mam, agent: str) -> None:
    with running(plain, agent) as terminal:
        terminal.shows("npm test", KEYS)
        assert terminal.text.count("wants to") == 1
        terminal.type("xa")
        assert terminal.ended() == 0
        terminal.shows("completed")
        assert terminal.settings == terminal.before
        assert KEYS not in terminal.text
    job = only_job(plain)
    assert [(one["answer"], one["decided"]) for one in job["questions"]] == [("allow", "person")]
    assert f"{job['job_id'][:8]}  {agent} · project" in terminal.lines


def test_a_key_that_was_typed_before_the_question_does_not_answer_it(plain: Mam, tmp_path: Path) -> None:
    agent = installed("claude-code", plain, tmp_path)
    with running(plain, agent) as terminal:
        terminal.type("a")
        terminal.shows(KEYS)
        terminal.type(CTRL_C)
        terminal.shows("detached", f"next: `mam answer {only_job(plain)['job_id'][:8]}`")
        assert terminal.settings == terminal.before
        assert terminal.ended() == 130
    job = only_job(plain)["job_id"]
    with Terminal(plain._argv(("output", job, "--follow")), plain.here, plain.env, columns=90) as terminal:
        terminal.shows("npm test", KEYS)
        terminal.type("d")
        assert terminal.ended() == 0
    assert only_job(plain)["questions"][0]["answer"] == "deny"


def test_ctrl_z_gives_the_shell_its_terminal_back_and_fg_continues(plain: Mam, tmp_path: Path) -> None:
    agent = installed("codex", plain, tmp_path)
    env = {**plain.env, "PS1": "ready> ", "ENV": "", "PYTHON": sys.executable}
    with Terminal(["/bin/sh", "-i"], plain.here, env, columns=90) as terminal:
        terminal.shows("ready>")
        terminal.type(f'"$PYTHON" -m mam run "do it" --agent {agent}\n')
        terminal.shows(KEYS)
        terminal.type(CTRL_Z)
        terminal.until(lambda: terminal.raw.endswith(b"ready> "), "the shell does not come back")
        terminal.type("stty -a | grep -o ' icanon'; echo do''ne a\n")
        terminal.shows("done a", "icanon")
        assert plain("questions", "--json").json
        terminal.type("fg\n")
        terminal.until(lambda: not _is_cooked(terminal), "it does not read keys again")
        terminal.type("a")
        terminal.shows("completed")
        terminal.until(lambda: terminal.raw.endswith(b"ready> "), "the shell does not come back")
        assert terminal.settings == terminal.before
        terminal.type("exit\n")
        terminal.ended()


def _is_cooked(terminal: Terminal) -> bool:
    """Whether it gives whole lines to programs, and no single keys."""
    flags = terminal.settings[3]
    assert isinstance(flags, int)
    return bool(flags & termios.ICANON)


def test_an_answer_from_elsewhere_removes_the_keys(plain: Mam, tmp_path: Path) -> None:
    agent = installed("codex", plain, tmp_path)
    with running(plain, agent) as terminal:
        terminal.shows(KEYS)
        assert plain("answer", only_job(plain)["job_id"], "allow").code == 0
        terminal.shows_not("[a] allow")
        terminal.shows("completed")
        assert terminal.ended() == 0
        assert terminal.settings == terminal.before


def test_without_a_terminal_a_message_names_the_command(plain: Mam, tmp_path: Path) -> None:
    agent = installed("codex", plain, tmp_path)
    plain("init")
    process = plain.start("run", "do it", "--agent", agent)
    await_that(lambda: plain("questions", "--json").json)
    job = only_job(plain)["job_id"]
    plain("answer", job, "allow")
    ended(plain, job)
    _, said = process.communicate(timeout=60)
    assert f"mam: {job[:8]}.1 asks: " in said.decode()
    assert f"`mam answer {job[:8]}.1` answers it" in said.decode()


def test_a_job_that_cannot_run_says_why(plain: Mam, tmp_path: Path) -> None:
    agent = installed("codex", plain, tmp_path)
    plain("init")
    plain("pause", "--agent", agent)
    with running(plain, agent) as terminal:
        terminal.shows("does not run yet: It is paused with agent codex, until `mam resume`.")
        plain("resume", "--agent", agent)
        terminal.shows(KEYS)
        terminal.type("a")
        assert terminal.ended() == 0
