"""A process is its boot, pid and start time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mam.machine.processes import (
    ProcessEntry,
    ProcessId,
    identify,
    is_alive,
    list_processes,
    ps,
    read_process,
    send_signal,
)
from mam.work.process.tree import _children_by_table, child_finder, walk
from tests.needs import need
from tests.work.support import await_gone

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def known(pid: int) -> ProcessId:
    process = identify(pid)
    assert process is not None
    return process


def test_a_process_is_alive_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    process = known(sleeper.pid)
    assert is_alive(process)
    assert send_signal(process, signal.SIGKILL)
    await_gone([process])  # by now it is a zombie, which this test has not waited for
    assert not is_alive(process)
    sleeper.wait()
    assert not is_alive(process)
    assert identify(sleeper.pid) is None
    assert not send_signal(process, signal.SIGKILL)


@pytest.mark.parametrize("change", [{"start_time": 1}, {"boot_id": "another"}, {"namespace": 7}])
def test_the_same_pid_alone_is_another_process(sleeper: subprocess.Popen[bytes], change: dict[str, Any]) -> None:
    stranger = known(sleeper.pid).replace(**change)
    assert not is_alive(stranger)
    assert not send_signal(stranger, signal.SIGKILL)
    assert sleeper.poll() is None
    assert is_alive(known(sleeper.pid))


def test_a_reused_pid_is_another_process(tmp_path: Any) -> None:
    """For real, in a namespace where pids can be chosen. Needs root, which CI has."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("choosing a pid needs root")
    script = """
import os, subprocess, time
from mam.machine.processes import identify, is_alive, send_signal
def start(pid):
    open("/proc/sys/kernel/ns_last_pid", "w").write(str(pid - 1))
    process = subprocess.Popen(["sleep", "1000"])
    assert process.pid == pid, process.pid
    return process
first = start(500)
earlier = identify(500)
first.kill(); first.wait()
time.sleep(0.02)  # the kernel counts start times in hundredths of a second
second = start(500)
assert identify(500) is not None and identify(500) != earlier
assert not is_alive(earlier) and not send_signal(earlier, 9) and second.poll() is None
second.kill(); second.wait()
print("seen")
"""
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script]
    asked = subprocess.run(command, capture_output=True, text=True)
    assert asked.stdout == "seen\n", asked.stderr


def test_a_process_id_survives_json() -> None:
    process = known(os.getpid())
    assert ProcessId.from_json(process.to_json()) == process


@pytest.mark.parametrize(
    "junk",
    [
        None,
        [],
        "12",
        {},
        {"boot_id": "b", "pid": 12},
        {"boot_id": "", "pid": 12, "start_time": 1},
        {"boot_id": "b", "pid": True, "start_time": 1},
        {"boot_id": "b", "pid": 1, "start_time": 1},
        {"boot_id": "b", "pid": 0, "start_time": 1},
        {"boot_id": "b", "pid": -1, "start_time": 1},
        {"boot_id": "b", "pid": 2**40, "start_time": 1},
        {"boot_id": "b", "pid": "12", "start_time": 1},
        {"boot_id": "b", "pid": 12, "start_time": 1.5},
        {"boot_id": "b", "pid": 12, "start_time": 1, "namespace": None},
    ],
)
def test_an_invalid_process_id_gives_none(junk: object) -> None:
    """Least of all 0, -1 and 1, which a signal would carry to a group, to everybody, and to the first process."""
    assert ProcessId.from_json(junk) is None


def test_a_name_full_of_parentheses_is_read_right(tmp_path: Any) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/usr/bin/sleep")
    process = subprocess.Popen([str(program), "1000"])
    try:
        entry = read_process(process.pid)
        assert entry is not None
        assert (entry.pid, entry.parent, entry.dead) == (process.pid, os.getpid(), False)
    finally:
        process.kill()
        process.wait()


def test_every_process_is_in_the_list(sleeper: subprocess.Popen[bytes]) -> None:
    found = {entry.pid: entry for entry in list_processes()}
    assert found[sleeper.pid] == read_process(sleeper.pid)
    assert found[sleeper.pid].session == os.getsid(sleeper.pid)


def test_ps_gives_the_same_answer(sleeper: subprocess.Popen[bytes]) -> None:
    """As far as it can: it gives the group for the session, and the start in seconds."""
    need("ps")

    def comparable(entry: ProcessEntry) -> ProcessEntry:
        return entry.replace(start_time=0, session=0)

    exact = read_process(sleeper.pid)
    assert exact is not None
    alone = list(ps("-p", str(sleeper.pid)))
    assert [comparable(entry) for entry in alone] == [comparable(exact)]
    assert alone[0] in list(ps("-ax"))
    assert alone == list(ps("-p", str(sleeper.pid)))


def test_both_ways_to_find_children_agree(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in child_finder()(os.getpid())
    assert sleeper.pid in _children_by_table()(os.getpid())


def test_a_walk_visits_parents_first() -> None:
    with subprocess.Popen(["sh", "-c", "sh -c 'sleep 1000 & echo; wait' & wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        told: list[tuple[list[int], int]] = []
        walk(process.pid, lambda pids, parent: told.append((pids, parent)))
        [child], [grandchild] = (pids for pids, _ in told)
        assert [parent for _, parent in told] == [process.pid, child]
        for pid in (process.pid, child, grandchild):
            os.kill(pid, signal.SIGKILL)


FEW = """
import fcntl, os, resource, select, signal, subprocess
from mam.work.process.tree import child_finder, signal_children
family = subprocess.Popen(["sh", "-c", "for i in $(seq 40); do sleep 1000 & done; echo; exec sleep 1000"], stdout=-1)
family.stdout.readline()
deaths, alive = select.epoll(), {}
for child in child_finder()(family.pid):
    opened = os.pidfd_open(child)
    beyond = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 100)  # so that it takes none of the few
    os.close(opened)
    deaths.register(beyond, select.EPOLLIN)
    alive[beyond] = child
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
rounds = 0
while alive:
    signal_children(list(alive.values()), family.pid, signal.SIGKILL)
    rounds += 1
    for dead, _ in deaths.poll():
        deaths.unregister(dead)
        del alive[dead]
print(rounds)
family.kill()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has descriptors of processes")
def test_a_process_with_few_descriptors_reaches_all_of_a_large_family() -> None:
    """Each round awaits a death, however long that takes on a busy machine; a round that reached none would not end."""
    with subprocess.Popen([sys.executable, "-c", FEW], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, _ = process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):  # as it is when all went well
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0
    assert int(out) > 1, "there were descriptors for all of them, so that nothing was tried"
