"""The companion: the lease stays correct when the companion is suspended, killed or cut off."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mam.agents.names import default_agent_id
from mam.machine.processes import is_alive, send_signal
from tests.agents.sessions import Sessions
from tests.waiting import await_that

GPU = default_agent_id("gpu")


def _expires(sessions: Sessions) -> str:
    return str(sessions.record("gpu")["liveness"]["lease_expires_at"])


def test_a_short_lease_is_kept(sessions: Sessions) -> None:
    sessions.mam("agents", "start", "gpu", "--lease", "2", "--", "cat")
    for _ in range(3):
        before = _expires(sessions)
        await_that(lambda before=before: _expires(sessions) > before)  # type: ignore[misc]
        assert sessions.mam("agents", "resolve", "gpu").line == GPU


def test_a_companion_that_was_suspended_past_its_lease_changes_nothing(sessions: Sessions) -> None:
    """SIGSTOP past the expiry, another generation takes the name, SIGCONT: the old companion changes nothing."""
    sessions.mam("agents", "start", "gpu", "--lease", "1", "--", "cat")
    companion = sessions.process("gpu", "companion")
    assert send_signal(companion, signal.SIGSTOP)
    await_that(lambda: sessions.mam("agents", "resolve", "gpu").code == 1)
    sessions.mam("agents", "publish", "gpu", "--session", "elsewhere", "--manifest", "/m", "--generation", "new")
    taken = sessions.file("gpu").read_bytes()
    assert send_signal(companion, signal.SIGCONT)

    await_that(lambda: not is_alive(companion))
    assert sessions.file("gpu").read_bytes() == taken
    sessions.tmux("kill-session", "-t", "=gpu:")


def test_a_respawned_pane_is_the_same_session(sessions: Sessions) -> None:
    generation = sessions.start("gpu", "cat")
    before = sessions.process("gpu", "process")
    sessions.tmux("respawn-pane", "-k", "-t", "=gpu:", "cat")

    await_that(lambda: not is_alive(before))
    await_that(lambda: sessions.process("gpu", "process") != before)
    assert (sessions.state("gpu"), sessions.record("gpu")["generation_id"]) == ("active", generation)


def test_the_companion_holds_no_lock_and_no_terminal(sessions: Sessions) -> None:
    sessions.start("gpu", "cat")
    for which in ("companion", "server"):
        pid = sessions.process("gpu", which).pid
        held = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        assert not [path for path in held if ".lock" in path], which
    pid = sessions.process("gpu", "companion").pid
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
    assert b"gpu" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_removing_the_record_ends_it(sessions: Sessions) -> None:
    generation = sessions.mam("agents", "start", "gpu", "--lease", "1", "--", "cat").line.split("\t")[1]
    companion = sessions.process("gpu", "companion")
    sessions.mam("agents", "remove", "gpu", "--generation", generation)
    await_that(lambda: not is_alive(companion))
    assert not sessions.file("gpu").exists()
    sessions.tmux("kill-session", "-t", "=gpu:")
