"""`mam watch` on a real terminal, with a real worker."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import LONGEST
from tests.cli.terminal import CTRL_C, CTRL_Z, DOWN, ENTER, ESCAPE, UP, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam
    from tests.waiting import Gate

pytestmark = pytest.mark.external

OTHER_SCREEN, BACK = b"\x1b[?1049h", b"\x1b[?1049l"
TITLES = ("NEEDS YOU", "RUNNING", "ERROR", "WAITING", "PENDING", "DONE")


@pytest.fixture
def command(mam: Mam) -> Mam:
    """Scripts of jobs say `mam`; what they print and keep stays in this test's directory."""
    programs = mam.home / "bin"
    programs.mkdir()
    shim = programs / "mam"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m mam "$@"\n')
    shim.chmod(0o700)
    mam.env["PATH"] = f"{programs}:{mam.env['PATH']}"
    mam.env["XDG_STATE_HOME"] = str(mam.home / "state")
    mam("init")
    return mam


def watch(mam: Mam, *words: str, columns: int = 100, rows: int = 30, **env: str) -> Terminal:
    return Terminal([sys.executable, "-m", "mam", "watch", *words], mam.here, {**mam.env, **env}, columns, rows)


@contextlib.contextmanager
def worker(mam: Mam, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that stops at the end of the test."""
    process = mam.start("worker", *words)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LONGEST)


def is_back(terminal: Terminal) -> bool:
    """Whether the terminal is as it was: its settings, its screen, its cursor."""
    return terminal.settings == terminal.before and terminal.raw.rindex(BACK) > terminal.raw.rindex(OTHER_SCREEN)


# -- the table -------------------------------------------------------------------------------------------------------


def test_an_empty_store_shows_the_next_commands(command: Mam) -> None:
    with watch(command) as terminal:
        terminal.shows("No jobs yet", "mam run -- make test", "q quit")
        terminal.type("q")

        assert terminal.ended() == 0
        assert is_back(terminal)


def test_jobs_that_need_a_person_come_first(command: Mam) -> None:
    running = command.register('mam publish progress --detail "seven of ten"; sleep 600', "-s", "busy")
    asking = command.register('mam publish permission_required --detail "may I push?"; sleep 600', "-s", "busy")
    yours = command("register", "Read the report", "--agent", "human", "-s", "busy").line
    failing = command.register("exit 3", "-s", "busy", "--priority", "9")
    after = command.register("later", "--after", running)
    command.register("nobody comes", "-s", "idle")
    done = command.register("echo fine", "-s", "busy", "--priority", "9")
    command("pause", "--agent-session", "idle", "--reason", "lunch")

    with watch(command) as terminal, worker(command, "-s", "busy", "--concurrency", "5"):
        terminal.shows("seven of ten", "may I push?", "exit code 3", "(unchecked)", "☞ yours")
        terminal.shows("3 need you · 3 running · 1 waiting · 1 pending")
        order = [line.split("  ")[0] for line in terminal.lines if line.startswith(TITLES)]
        place = {job: terminal.text.index(job[:8]) for job in (asking, yours, failing, running, after, done)}
        terminal.type("q")

        assert terminal.ended() == 0
    assert order == ["NEEDS YOU", "RUNNING", "WAITING", "PENDING", "DONE"]
    assert max(place[asking], place[yours], place[failing]) < place[running] < place[after] < place[done]
    assert f"job {running[:8]}, which is running" in terminal.text
    assert re.search(r"○ +1  idle  paused: lunch", terminal.text)


def test_it_moves_with_the_journal(command: Mam) -> None:
    with watch(command) as terminal:
        terminal.shows("No jobs yet")
        job = command.register("do it", "-s", "me")
        terminal.shows("PENDING  1", "me")
        command("pick", "-s", "me", "--owner", "anna@laptop")
        terminal.shows("RUNNING  1", f"{job[:8]}  ▶ running")
        command("publish", "--job", job, "--event", "progress", "--detail", "half of it")
        terminal.shows("half of it")
        command("complete", job)
        terminal.shows("DONE", f"{job[:8]}  ✔ completed")
        assert "RUNNING" not in terminal.text
        command("pause", "-s", "me")
        command.register("one more", "-s", "me")
        terminal.shows("me  paused")
        command("resume", "-s", "me")
        terminal.shows_not("paused")


def test_filters_choose_what_is_shown(command: Mam) -> None:
    mine = command.register("mine", "--after", command.register("first", "-s", "me"), "-s", "me")
    with watch(command, "-s", "me", "--status", "waiting") as terminal:
        terminal.shows(mine[:8], "waiting, me in")
        other = command.register("another", "--after", mine, "-s", "you")
        command.register("pending", "-s", "me")
        again = command.register("mine too", "--after", mine, "-s", "me")
        terminal.shows(again[:8])

        assert other[:8] not in terminal.text
        assert "PENDING" not in terminal.text


def test_a_job_opens_with_its_reasons_its_events_and_its_output(command: Mam) -> None:
    job = command.register(
        'mam publish progress --detail "on it"; echo one; printf "\\033[31mtwo\\n"; exit 3', "-s", "x"
    )
    command("worker", "-s", "x", "--drain")
    with watch(command) as terminal:
        terminal.shows(job[:8], "✖ error")
        terminal.type(ENTER)
        terminal.shows(
            job, "It ended in error", "exit code 3", "EVENTS", "progress", "on it", "OUTPUT", "  one", "  two"
        )
        terminal.type(ESCAPE)
        terminal.shows("NEEDS YOU")
        terminal.type("o")
        terminal.shows("OUTPUT")
        terminal.type("q")
        terminal.shows("NEEDS YOU")
        terminal.type("?")
        terminal.shows("KEYS")
        terminal.type("x")
        terminal.shows_not("KEYS")


def test_the_output_of_a_running_job_is_shown_as_it_comes(command: Mam, gate: Gate) -> None:
    job = command.register(f"echo begun; {gate.wait}; echo much later; sleep 600", "-s", "x")
    with watch(command) as terminal, worker(command, "-s", "x"):
        terminal.shows(f"{job[:8]}  ▶ running")
        terminal.type("o")
        terminal.shows("  begun")
        gate.open()
        terminal.shows("  much later")


# -- keys ------------------------------------------------------------------------------------------------------------


def test_cancel_asks_first(command: Mam) -> None:
    job = command.register("sleep 600", "-s", "x")
    with watch(command) as terminal, worker(command, "-s", "x"):
        terminal.shows(f"› {job[:8]}  ▶ running")
        terminal.type("c")
        terminal.shows(f"y/n cancel {job[:8]}, running: sleep 600")
        terminal.type("n")
        terminal.shows(f"{job[:8]} continues")
        assert command.status(job) == "running"
        terminal.type("c")
        terminal.shows("y/n")
        terminal.type("y")
        terminal.shows(f"{job[:8]} is cancelled", f"{job[:8]}  ⊘ cancelled")
    record = command.record(job)
    assert (record["status"], record["reason"]) == ("cancelled", "cancelled in mam watch")


def test_pasted_keys_do_not_answer_the_question(command: Mam) -> None:
    job = command.register("do it", "-s", "x", "--at", "+1h")
    with watch(command) as terminal:
        terminal.shows(f"› {job[:8]}")
        terminal.type("cy")
        terminal.shows("y/n")
        terminal.type("n")
        terminal.shows("continues")
    assert command.status(job) == "waiting"


def test_retry_hands_it_out_once_more(command: Mam) -> None:
    job = command.register("exit 3", "-s", "x")
    command("worker", "-s", "x", "--drain")
    with watch(command) as terminal:
        terminal.shows("NEEDS YOU  1")
        terminal.type("r")
        terminal.shows("was registered again as", "ERROR  1", "PENDING  1")
        terminal.shows_not("NEEDS YOU")
        terminal.type("c")
        terminal.shows("has already ended")
    new = command("list", "--status", "pending", "--json").json[0]
    assert new["retry_of"] == job


def test_a_job_that_runs_cannot_be_retried(command: Mam) -> None:
    job = command.register("do it", "-s", "x", "--at", "+1h")
    with watch(command) as terminal:
        terminal.shows(f"› {job[:8]}")
        terminal.type("r")
        terminal.shows("only an ended job is retried")


def test_the_selection_stays_on_its_job(command: Mam) -> None:
    jobs = [command.register(f"number {at}", "-s", "x", "--at", f"+{at + 1}h") for at in range(4)]
    with watch(command) as terminal:
        terminal.shows(f"› {jobs[0][:8]}")
        terminal.type(DOWN + "j")
        terminal.shows(f"› {jobs[2][:8]}")
        command("cancel", jobs[0])
        terminal.shows("⊘ cancelled", f"› {jobs[2][:8]}")
        terminal.type(UP)
        terminal.shows(f"› {jobs[1][:8]}")
        terminal.type("G")
        terminal.shows(f"› {jobs[0][:8]}")
        terminal.type("g")
        terminal.shows(f"› {jobs[1][:8]}")


def test_a_label_unfolds_and_what_does_not_fit_is_folded(command: Mam) -> None:
    jobs = [command.register(f"number {at}", "-s", "x") for at in range(3)]
    for at in range(12):
        command.register(f"later {at}", "-s", "y", "--at", "+1h")
    with watch(command, rows=16) as terminal:
        terminal.shows("WAITING  12", "more; ⏎ shows them", "PENDING  3")
        terminal.type("G" + ENTER)
        terminal.shows(*(f"{job[:8]}  ○ pending" for job in jobs))
        terminal.type(ESCAPE)
        terminal.shows_not("○ pending")
        terminal.type("k" + ENTER)
        terminal.shows_not("more; ⏎")
        terminal.type("G")
        terminal.shows("›", "PENDING")


# -- the terminal ----------------------------------------------------------------------------------------------------


def test_hostile_text_cannot_act_on_the_terminal(command: Mam) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202eevil [red]x[/red]"
    job = command.register(f"{evil}\nexit 1", "-s", "[bold]label\u202e")
    with watch(command) as terminal:
        terminal.shows("[bold]label\\u202e")
        command("cancel", job, "--reason", evil)
        terminal.shows(job[:8], "\\x1b]0;owned\\x07\\x1b[2J\\u202eevil [red]x[/red]")
        terminal.type("o")
        terminal.shows("EVENTS", "\\x1b]0;owned\\x07")
    for act in (b"\x1b]0;", b"\x1b[5m", "\u202e".encode()):
        assert act not in terminal.raw


def test_output_of_an_agent_cannot_act_on_the_terminal(command: Mam) -> None:
    job = command.register("printf 'a\\033[2J\\033]0;owned\\007b\\n\\377\\342\\200\\256end\\n'", "-s", "x")
    command("worker", "-s", "x", "--drain")
    with watch(command) as terminal:
        terminal.shows(job[:8])
        terminal.type("o")
        terminal.shows("OUTPUT", "  ab", "\\u202eend")
    assert b"\x1b]0;" not in terminal.raw
    assert terminal.raw.count(b"\x1b[2J") == 1  # its own, at the beginning


def test_it_survives_every_size(command: Mam) -> None:
    job = command.register("a prompt that is longer than many a line of a terminal is wide", "-s", "x", "--at", "+1h")
    with watch(command) as terminal:
        terminal.shows(job[:8], "1 waiting")
        for columns, rows in ((40, 12), (12, 4), (1, 1), (3, 2), (200, 60), (80, 24)):
            terminal.resize(columns, rows)
            if columns >= 40:
                terminal.shows(job[:8])
        terminal.type("o")
        terminal.shows("It waits for its start time")
        terminal.resize(30, 10)
        terminal.shows(job[:20])
        terminal.type("qq")

        assert terminal.ended() == 0


@pytest.mark.parametrize("how", [CTRL_C, signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_put_back_however_it_ends(command: Mam, how: str | signal.Signals) -> None:
    with watch(command) as terminal:
        terminal.shows("No jobs yet")
        assert terminal.settings != terminal.before
        if isinstance(how, str):
            terminal.type(how)
        else:
            os.kill(terminal.process.pid, how)

        assert terminal.ended() == (130 if isinstance(how, str) else 128 + how)
        assert is_back(terminal)
        assert "Traceback" not in terminal.text


def test_the_terminal_is_put_back_after_an_error(command: Mam) -> None:
    with watch(command, MAM_DEBUG="0") as terminal:
        terminal.shows("No jobs yet")
        shutil.rmtree(command.here / ".mam")
        terminal.shows("cannot read the store:")
        terminal.type("q")

        assert terminal.ended() == 0
        assert is_back(terminal)


def test_a_store_that_returns_is_read_from_the_start(command: Mam) -> None:
    with watch(command) as terminal:
        terminal.shows("No jobs yet")
        shutil.rmtree(command.here / ".mam")
        terminal.shows("cannot read the store:")
        job = command.register("from the new store", "-s", "x", "--at", "+1h")
        terminal.shows(job[:8])
        terminal.shows_not("cannot read the store:")


def test_ctrl_z_suspends_and_fg_continues(command: Mam) -> None:
    job = command.register("do it", "-s", "x", "--at", "+1h")
    env = {**command.env, "PS1": "ready> ", "ENV": "", "PYTHON": sys.executable}
    with Terminal(["/bin/sh", "-i"], command.here, env) as terminal:
        terminal.shows("ready>")
        terminal.type('"$PYTHON" -m mam watch\n')
        terminal.shows(job[:8])
        terminal.type(CTRL_Z)
        terminal.until(lambda: terminal.raw.endswith(b"ready> "), "the shell does not come back")
        assert terminal.raw.rindex(BACK) > terminal.raw.rindex(OTHER_SCREEN)
        terminal.type("stty -a | grep -o ' icanon'; echo do''ne\n")
        terminal.shows("done", "icanon")
        shown = len(terminal.raw)
        terminal.type("fg\n")
        terminal.until(lambda: job[:8].encode() in terminal.raw[shown:], "it does not come back")
        terminal.type("o")
        terminal.shows("It waits for its start time")
        terminal.type("qq")
        terminal.until(lambda: terminal.raw.endswith(b"ready> "), "the shell does not come back")
        terminal.type("exit\n")
        terminal.ended()


def test_no_color_means_none(command: Mam) -> None:
    command.register("exit 3", "-s", "x")
    command("worker", "-s", "x", "--drain")
    with watch(command, NO_COLOR="1") as terminal:
        terminal.shows("✖ error")
        terminal.type("q")
        terminal.ended()
    styles = {style for found in re.findall(rb"\x1b\[([\d;]*)m", terminal.raw) for style in found.split(b";")}
    assert styles <= {b"", b"0", b"1", b"2", b"7"}


# -- questions -------------------------------------------------------------------------------------------------------


def asks(command: Mam, text: str, *words: str) -> str:
    """A running job with an open question."""
    job = command.register("sleep 1", "-s", "busy")
    assert command("pick", "-s", "busy").line == job
    assert command("ask", text, *words, "--job", job, "--attempt", "1").code == 0
    return job


def test_a_question_is_on_top_and_answered_with_a_key(command: Mam) -> None:
    command.register("exit 3", "-s", "other")
    assert command("worker", "-s", "other", "--drain").code == 0
    job = asks(command, "Which database?\nIt must be \u202eone.", "--choice", "sqlite", "--choice", "postgres")
    with watch(command, rows=40) as terminal:
        terminal.shows("2 need you", "Which database?")
        assert terminal.text.index("Which database?") < terminal.text.index("exit code 3")
        terminal.type("a")
        terminal.shows("It must be \\u202eone.", "1 sqlite", "2 postgres", "d deny")
        terminal.type("x")
        terminal.shows(f"{job[:8]}.1 stays open")
        terminal.type("a")
        terminal.shows("1 sqlite")
        terminal.type("2")
        terminal.shows(f"{job[:8]}.1: postgres")
        terminal.type("q")
        terminal.shows("1 needs you")
        terminal.type("q")
        assert terminal.ended() == 0
    question = command.record(job)["questions"][0]
    assert (question["answer"], question["decided"]) == ("postgres", "person")


def test_another_answer_was_first(command: Mam) -> None:
    job = asks(command, "Which?", "--choice", "sqlite", "--choice", "postgres")
    with watch(command) as terminal:
        terminal.shows("Which?")
        terminal.type("a")
        terminal.shows("1 sqlite")
        assert command("answer", job, "postgres").code == 0
        terminal.type("1")
        terminal.shows("was answered by")
        terminal.type("a")
        terminal.shows("asks nothing")
        terminal.type("qq")
        assert terminal.ended() == 0
    assert command.record(job)["questions"][0]["answer"] == "postgres"


def test_keys_typed_ahead_answer_nothing(command: Mam) -> None:
    job = asks(command, "Which?", "--choice", "sqlite")
    with watch(command) as terminal:
        terminal.shows("Which?")
        terminal.type("a1")
        terminal.shows("1 sqlite")
        assert command.record(job)["questions"][0].get("answer") is None
        terminal.type(ESCAPE)
        terminal.shows("stays open")
        terminal.type("qq")
        assert terminal.ended() == 0


def test_a_free_text_is_typed(command: Mam) -> None:
    """Also in a small terminal, with letters of any script, and corrected before it is sent."""
    job = asks(command, "What shall the page be called?")
    with watch(command, columns=80, rows=24) as terminal:
        terminal.shows("What shall the page be called?")
        terminal.type("a")
        terminal.shows("t type an answer", "d deny", "Esc later")
        terminal.type("t")
        terminal.shows("answer:", "⏎ answers", "Esc back")
        terminal.type(ENTER)
        terminal.shows("the answer is empty", "answer:")
        terminal.type("Kürze qd wrong\x17\x7f\x7f\x7fJ 日本")
        terminal.shows("answer: Kürze J 日")
        assert "answer" not in command.record(job)["questions"][0], "a letter is not a command"
        terminal.type(ENTER)
        terminal.shows(f"{job[:8]}.1: Kürze J 日本".replace("日本", "日"))
        terminal.type("qq")
        assert terminal.ended() == 0
    question = command.record(job)["questions"][0]
    assert (question["answer"], question["decided"]) == ("Kürze J 日本", "person")


def test_escape_leaves_a_text_unsent(command: Mam) -> None:
    job = asks(command, "Which?", "--tool", "Bash", "--input", '{"command": "git push"}')
    with watch(command) as terminal:
        terminal.shows("git push")
        terminal.type("a")
        terminal.shows("a allow", "r deny with a reason")
        terminal.type("r")
        terminal.shows("reason:")
        terminal.type("use a branch")
        terminal.shows("use a branch")
        terminal.type(ESCAPE)
        terminal.shows("a allow")
        terminal.shows_not("use a branch")
        terminal.type(ESCAPE)
        terminal.shows("stays open")
        terminal.type("qq")
        assert terminal.ended() == 0
    assert command.record(job)["questions"][0].get("state") is None, "it is open"


def test_a_denial_with_a_pasted_reason(command: Mam) -> None:
    """Lines of what is pasted do not end the text, and nothing of them is a command."""
    job = asks(command, "Which?", "--tool", "Bash", "--input", '{"command": "git push"}')
    other = command.register("exit 3", "-s", "other")
    with watch(command) as terminal:
        terminal.shows("git push")
        terminal.type("a")
        terminal.shows("r deny with a reason")
        terminal.type("\x1b[200~a\rA\x1b[201~")
        terminal.type("r")
        terminal.shows("reason:")
        terminal.type("\x1b[200~use\ta branch\r\u202edcy\x1b[201~!\r")
        terminal.shows(f"{job[:8]}.1: deny")
        terminal.type("\x1b[200~cy\x1b[201~qq")
        assert terminal.ended() == 0
    question = command.record(job)["questions"][0]
    assert (question["answer"], question["reason"]) == ("deny", "use\ta branch\n\u202edcy!")
    assert command.status(other) == "pending"


def test_a_long_question_is_folded_and_only_the_whole_is_allowed(command: Mam) -> None:
    script = "\n".join(f"echo line {at} \u202e\u2060" for at in range(60))
    job = asks(command, "It runs this.", "--tool", "Bash", "--input", json.dumps({"command": script}))
    with watch(command, columns=80, rows=24) as terminal:
        terminal.shows("echo line 0")
        terminal.type("a")
        terminal.shows("echo line 5 \\u202e\\u2060", "more lines; f shows them", "f unfold")
        assert "echo line 12" not in terminal.text
        terminal.type("a")
        terminal.shows("lines that you have not seen")
        terminal.type("f")
        terminal.shows("echo line 15")
        for _ in range(5):
            terminal.type("\x1b[6~")
        terminal.shows("echo line 59")
        terminal.type("a")
        terminal.shows(f"{job[:8]}.1: allow")
        terminal.type("qq")
        assert terminal.ended() == 0
    assert command.record(job)["questions"][0]["answer"] == "allow"


def test_a_job_of_a_person_is_answered(command: Mam) -> None:
    job = command.register("Read the report\nand say what it lacks", "--agent", "human")
    with watch(command, columns=80, rows=24) as terminal:
        terminal.shows("yours")
        terminal.type("a")
        terminal.shows("and say what it lacks", "t type an answer")
        terminal.type("t")
        terminal.shows("answer:")
        terminal.type("It lacks an end.\r")
        terminal.shows(f"{job[:8]}: completed")
        terminal.type("qq")
        assert terminal.ended() == 0
    assert command("result", job).line == "It lacks an end."
