"""start, stop, attach, restart, adopt and status with real tmux."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from mam.agents import launch as launching
from mam.agents import tmux as tmux_module
from mam.agents.companion import start_companion
from mam.agents.errors import EndedAtOnce
from mam.agents.files_directory import FilesDirectory
from mam.agents.names import default_agent_id
from mam.agents.record import AgentRecord
from mam.agents.status import session_status
from mam.machine.processes import is_alive, send_signal
from tests.agents.sessions import SINK, Sessions, Sink
from tests.cli.command import finish
from tests.waiting import Gate, await_that


def test_a_session_has_record_manifest_and_companion(sessions: Sessions) -> None:
    generation = sessions.start("gpu", "cat")
    record = sessions.record("gpu")

    assert sessions.names() == {"gpu"}
    assert (record["lifecycle"]["state"], record["generation_id"]) == ("active", generation)
    manifest = json.loads(Path(record["runtime"]["manifest_path"]).read_bytes())
    assert (manifest["generation_id"], manifest["tmux_session_name"], manifest["command"]) == (
        generation, "gpu", ["cat"],
    )  # fmt: skip
    assert is_alive(sessions.process("gpu", "companion"))
    assert is_alive(sessions.process("gpu", "process"))
    assert is_alive(sessions.process("gpu", "server"))
    status = sessions.status("gpu")
    assert (status["record"], status["tmux"], status["process"], status["companion"], status["drift"]) == (
        "live", "there", "there", "there", [],
    )  # fmt: skip


def test_the_agent_gets_its_identity_and_its_arguments_unchanged(sessions: Sessions, sink: Sink) -> None:
    script = 'printf "%s|" "$MAM_AGENT_ID" "$MAM_GENERATION" "$@" >"$0"; exec cat'
    told = sessions.folder / "told"
    words = ["a b", "semi;", "back\\;", ";", "$HOME", "#{pid}", "quote'\"", "한국어", "--", "-x"]
    generation = sessions.start("gpu", "sh", "-c", script, str(told), *words)

    await_that(lambda: told.exists() and told.read_text(encoding="utf-8").endswith("-x|"))
    assert told.read_text(encoding="utf-8").split("|")[:-1] == [default_agent_id("gpu"), generation, *words]


def test_one_word_is_a_program_and_not_a_shell_script(sessions: Sessions) -> None:
    mam = sessions.mam
    mam("agents", "start", "gpu", "--", "cat; touch /tmp/never").failed(1, "cannot be run")
    mam("agents", "start", "gpu", "--", "no-such-program").failed(1, "no-such-program")
    mam("agents", "start", "gpu", "--", "A=B").failed(2, "not the name of a program")
    mam("agents", "start", "gpu").failed(2, "--")
    mam("agents", "start", "gpu", "--session", "a.b", "--", "cat").failed(2, "a.b")
    assert mam("agents", "list").out == ""


def test_secrets_do_not_reach_the_session(sessions: Sessions) -> None:
    told = sessions.folder / "told"
    sessions.mam.env.update(PGPASSWORD="canary", MAM_STORE="postgresql://u:canary@/x?host=/nowhere")
    sessions.mam.env.pop("MAM_STORE")
    sessions.start("gpu", "sh", "-c", f"env >{told}.new; mv {told}.new {told}; exec cat")
    await_that(told.exists)
    assert "canary" not in told.read_text(encoding="utf-8")
    assert "canary" not in sessions.tmux("show-environment", "-g")


def test_a_second_start_is_refused_and_runs_nothing(sessions: Sessions) -> None:
    first = sessions.start("gpu", "cat")
    mark = sessions.folder / "ran"
    sessions.mam("agents", "start", "gpu", "--session", "x", "--", "touch", str(mark)).failed(4, first)
    assert sessions.names() == {"gpu"}
    assert not mark.exists()
    sessions.mam("agents", "start", "other", "--session", "gpu", "--", "cat").failed(1, "already a tmux session gpu")
    sessions.mam("agents", "show", "other").failed(1, "there is none")


def test_one_of_many_simultaneous_starts_runs(sessions: Sessions) -> None:
    ran = sessions.folder / "ran"
    command = ("sh", "-c", f"echo $MAM_GENERATION >>{ran}; exec cat")
    started = [sessions.mam.start("agents", "start", "gpu", "--session", f"s{n}", "--", *command) for n in range(6)]
    ends = [finish(process) for process in started]

    assert sorted(end.code for end in ends) == [0, 4, 4, 4, 4, 4]
    await_that(ran.exists)
    winner = next(end for end in ends if end.code == 0)
    assert ran.read_text(encoding="utf-8").split() == [winner.line.split("\t")[1]]
    assert len(sessions.names()) == 1


def test_a_program_that_ends_at_once_is_reported_and_leaves_nothing(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", sessions.mam.env["TMUX_TMPDIR"])

    def once_it_has_ended(opener: str, record: AgentRecord) -> bool:
        gate.open()
        await_that(lambda: sessions.names() == set())
        return start_companion(opener, record)

    monkeypatch.setattr(launching, "start_companion", once_it_has_ended)
    command = ("sh", "-c", gate.wait)
    plan = launching.Plan(agent_name="MAM-gpu", agent_id="gpu", tool="sh", session="gpu", command=command)
    with pytest.raises(EndedAtOnce, match="'sh' ended right after it was started for gpu"):
        launching.launch(FilesDirectory(str(sessions.agents)), str(sessions.agents), plan)
    assert sessions.mam("agents", "list").out == ""


def test_when_the_program_ends_the_record_is_stopped(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    companion = sessions.process("gpu", "companion")
    assert send_signal(sessions.process("gpu", "process"), signal.SIGKILL)

    await_that(lambda: sessions.state("gpu") == "stopped")
    await_that(lambda: not is_alive(companion))
    record = sessions.record("gpu")
    assert record["lifecycle"]["stop_reason"] == "session_ended"
    assert record["terminal"] == {"current_session_name": None, "kind": "tmux", "last_session_name": "gpu"}
    sessions.mam("agents", "resolve", "gpu").failed(1, "stopped")


def test_when_the_server_is_killed_the_record_is_stopped(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    assert send_signal(sessions.process("gpu", "server"), signal.SIGKILL)
    await_that(lambda: sessions.state("gpu") == "stopped")


def test_a_lost_companion_is_a_drift_and_adopting_resumes_the_generation(sessions: Sessions) -> None:
    generation = sessions.start("gpu", "cat")
    companion = sessions.process("gpu", "companion")
    assert send_signal(companion, signal.SIGKILL)
    await_that(lambda: not is_alive(companion))

    ran = sessions.mam("agents", "status", "gpu")
    assert ran.code == 1
    assert "nothing renews its lease" in ran.out
    assert sessions.mam("agents", "adopt", "gpu").line.split("\t")[1] == generation
    assert sessions.status("gpu")["drift"] == []
    assert sessions.record("gpu")["lifecycle"]["relaunchable"]


def test_a_session_whose_name_begins_like_another_s_is_another_one(sessions: Sessions) -> None:
    """tmux itself completes the beginning of a name."""
    for name in ("claude-2", "claude"):
        sessions.start(name, "cat")

    assert sessions.names() == {"claude", "claude-2"}
    assert sessions.process("claude", "process") != sessions.process("claude-2", "process")


def test_stop_ends_exactly_this_one(sessions: Sessions) -> None:
    for name in ("claude", "claude-2"):
        sessions.start(name, "cat")
    process = sessions.process("claude", "process")

    sessions.mam("agents", "stop", "claude", "--generation", "another").failed(4)
    assert sessions.mam("agents", "stop", "claude").line == default_agent_id("claude")

    assert sessions.names() == {"claude-2"}
    assert not is_alive(process)
    assert sessions.state("claude") == "stopped"
    assert sessions.mam("agents", "stop", "claude").code == 0  # it has already been stopped
    for verb in ("attach", "send"):
        words = ["text"] if verb == "send" else []
        sessions.mam("agents", verb, "claude", *words).failed(1, "stopped")
    assert sessions.status("claude-2")["drift"] == []


def test_a_program_that_ignores_the_hangup_ends_too(sessions: Sessions, sink: Sink) -> None:
    script = f"import signal; signal.signal(1, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)\n{SINK}"
    command = sink.command()
    command[2] = script
    sessions.start("gpu", *command)
    sink.await_ready()
    process = sessions.process("gpu", "process")
    sessions.mam("agents", "stop", "gpu")
    assert not is_alive(process)


def test_restart_is_a_new_generation(sessions: Sessions) -> None:
    old = sessions.start("gpu", "sh", "-c", "exec cat")
    new = sessions.mam("agents", "restart", "gpu").line.split("\t")[1]

    assert new != old
    assert sessions.names() == {"gpu"}
    assert sessions.status("gpu")["drift"] == []
    sessions.mam("agents", "refresh", "gpu", "--generation", old).failed(4, "has been replaced")
    sessions.mam("agents", "send", "gpu", "text", "--generation", old).failed(4)
    assert sessions.record("gpu")["mam"]["superseded"] == [old]
    sessions.mam("agents", "stop", "gpu", "--retire")
    sessions.mam("agents", "restart", "gpu").failed(1, "retired")


def test_the_name_of_a_dead_session_can_be_taken_over(sessions: Sessions) -> None:
    old = sessions.start("gpu", "cat")
    assert send_signal(sessions.process("gpu", "companion"), signal.SIGKILL)
    assert send_signal(sessions.process("gpu", "server"), signal.SIGKILL)
    server = sessions.process("gpu", "server")
    await_that(lambda: not is_alive(server))

    assert "its tmux session is gone" in sessions.mam("agents", "status", "gpu").out
    sessions.mam("agents", "send", "gpu", "text").failed(1, "restart gpu")
    sessions.mam("agents", "start", "gpu", "--", "cat").failed(4, old)
    assert sessions.mam("agents", "restart", "gpu").line.split("\t")[1] != old


def test_a_session_that_a_person_started_can_be_adopted(sessions: Sessions, sink: Sink) -> None:
    sessions.tmux("new-session", "-d", "-s", "work", *sink.command(), server="default")
    sink.await_ready()
    sessions.mam("agents", "adopt", "gpu", "--session", "wor").failed(1, "wor")
    sessions.mam("agents", "adopt", "gpu", "--session", "work", "--agent", "claude-code")

    record = sessions.record("gpu")
    assert record["identity"]["tool"] == "claude-code"
    assert not record["lifecycle"]["relaunchable"]
    assert sessions.status("gpu")["drift"] == []
    assert sessions.send("gpu", "hello").code == 0
    assert sink.read(6) == b"hello\r"
    sessions.mam("agents", "restart", "gpu").failed(1, "no command")
    sessions.mam("agents", "stop", "gpu")
    assert sessions.state("gpu") == "stopped"


# -- who is who ------------------------------------------------------------------------------------------------------


def test_a_session_of_the_same_name_is_not_the_same_session(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    companion = sessions.process("gpu", "companion")
    assert send_signal(companion, signal.SIGSTOP)  # so that nothing updates the record
    sessions.tmux("new-session", "-d", "-s", "keep", "cat")
    sessions.tmux("kill-session", "-t", "=gpu:")
    sessions.tmux("new-session", "-d", "-s", "gpu", "cat")

    sessions.mam("agents", "send", "gpu", "text").failed(1, "is another one")
    sessions.tmux("set-option", "-t", "=gpu:", "@mam_generation", sessions.record("gpu")["generation_id"])
    sessions.mam("agents", "send", "gpu", "text").failed(1, "is another one")
    sessions.mam("agents", "stop", "gpu").failed(1, "is another one")
    assert sessions.names() == {"keep", "gpu"}
    send_signal(companion, signal.SIGCONT)


def test_another_server_at_the_same_socket_is_not_the_same_server(sessions: Sessions) -> None:
    generation = sessions.start("gpu", "cat")
    companion, server = sessions.process("gpu", "companion"), sessions.process("gpu", "server")
    assert send_signal(companion, signal.SIGSTOP)
    assert send_signal(server, signal.SIGKILL)
    await_that(lambda: not is_alive(server))
    sessions.tmux("new-session", "-d", "-s", "gpu", "cat")
    sessions.tmux("set-option", "-t", "=gpu:", "@mam_generation", generation)

    sessions.mam("agents", "send", "gpu", "text").failed(1, "is not the one of gpu")
    send_signal(companion, signal.SIGCONT)


def test_another_generation_in_the_pane_is_refused(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    sessions.tmux("set-option", "-t", "=gpu:", "@mam_generation", "somebody")
    sessions.mam("agents", "send", "gpu", "text").failed(4, "somebody")
    sessions.mam("agents", "stop", "gpu").failed(4, "somebody")
    assert sessions.names() == {"gpu"}


def test_a_server_that_does_not_answer_is_unknown_and_not_dead(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.start("gpu", "cat")
    monkeypatch.setattr(tmux_module, "ANSWER_SECONDS", 0.5)
    server = sessions.process("gpu", "server")
    directory = FilesDirectory(str(sessions.agents))
    assert send_signal(server, signal.SIGSTOP)
    try:
        status = session_status(directory.read(default_agent_id("gpu")), directory.clock.now())
        assert (status.record, status.tmux, status.drift) == ("live", "unknown", ())
    finally:
        assert send_signal(server, signal.SIGCONT)
    status = session_status(directory.read(default_agent_id("gpu")), directory.clock.now())
    assert status.tmux == "there"


def test_status_lists_the_jobs_of_a_session(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    job = sessions.mam("register", "do it", "--agent", "shell", "--agent-session", "tmux:gpu").line
    sessions.mam("pick", "--agent-session", "tmux:gpu")
    assert [row["job_id"] for row in sessions.status("gpu")["jobs"]] == [job]


# -- attach ----------------------------------------------------------------------------------------------------------


def test_attach_switches_a_client_that_is_inside(sessions: Sessions) -> None:
    for name in ("claude", "claude-2"):
        sessions.start(name, "cat")
    where = sessions.tmux("display-message", "-p", "#{socket_path},#{pid},0")
    with sessions.person("claude-2"):
        sessions.mam.env["TMUX"] = where
        assert sessions.mam("agents", "attach", "claude").code == 0
        assert sessions.tmux("list-clients", "-F", "#{session_name}") == "claude"


def test_attach_works_inside_another_tmux_server(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    env = {**sessions.mam.env, "TERM": "xterm"}
    subprocess.run(
        ["tmux", "-L", "other", "new-session", "-d", "-s", "outer", "-x", "80", "-y", "24",
         "-e", f"MAM_AGENTS_DIR={sessions.agents}", "--", *sessions.mam._argv(("agents", "attach", "gpu"))],
        check=True, env=env, cwd=sessions.folder,
    )  # fmt: skip
    await_that(lambda: sessions.tmux("list-clients", "-F", "#{session_name}") == "gpu")


def test_attach_without_a_terminal_is_a_sentence(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    sessions.mam("agents", "attach", "gpu").failed(1, "needs a terminal")
    sessions.mam("agents", "attach", "nobody").failed(1, "No live record")


def test_a_server_that_stays_without_sessions_is_empty_and_no_failure(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    sessions.tmux("set-option", "-s", "exit-empty", "off")
    assert sessions.mam("agents", "stop", "gpu").code == 0

    (status,) = sessions.mam("agents", "status", "--json").json
    assert (status["tmux"], status["drift"]) == ("gone", [])
    assert sessions.mam("agents", "restart", "gpu").code == 0
    assert sessions.names() == {"gpu"}
