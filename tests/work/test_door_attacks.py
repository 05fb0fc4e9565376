"""Hostile and broken clients of the door: each is rejected or delays only itself, and the worker continues."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mam.errors import StoreUnavailable
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.work.door import connection, event_loop
from mam.work.door.server import DoorServer
from tests.work.doors import PATIENCE, ask, heard, held_job, refused, say, through, visitor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.stores.port import Act
    from mam.work.door.server import Door

MIB = 1 << 20


@pytest.fixture
def registry() -> Registry:
    return Registry(MemoryStore())


@pytest.fixture
def door_server(registry: Registry) -> Iterator[DoorServer]:
    with DoorServer(registry) as door_server:
        yield door_server


@pytest.fixture
def job(registry: Registry) -> Job:
    return held_job(registry)


@pytest.fixture
def door(door_server: DoorServer, job: Job) -> Door:
    return door_server.open(job.job_id, job.attempt, "/")


@pytest.mark.parametrize(
    "data",
    [
        b"\n", b"garbage\n", b"\x00\xff\xfe\n", b"null\n", b"[]\n", b'"text"\n', b"1e999\n", b"{}\n", b'{"verb": 7}\n',
        b"[" * 500_000 + b"\n", b'{"a":' * 100_000 + b"\n", b'{"verb": "publish", "data": NaN}\n',
        b'{"verb": "heartbeat", "attempt": Infinity}\n', b'{"verb": "heartbeat", "attempt": ' + b"9" * 9999 + b"}\n",
        b'{"verb": "complete", "body": -1}\n', b'{"verb": "complete", "body": 1e3}\n',
        b'{"verb": "complete", "body": 8388609}\n', b'{"verb": "complete", "body": true}\n',
        b'{"verb": "complete", "body": 2}\n\xff\xff', b'{"verb": "complete", "body": 3}\na\x00b',
        b'{"verb": "complete", "result": 5}\n', b'{"verb": "complete", "result": "\\ud800"}\n',
        b'{"verb": "fail"}\n', b'{"verb": "fail", "reason": "x", "retryable": "yes"}\n',
        b'{"verb": "publish"}\n', b'{"verb": "publish", "event": ["progress"]}\n',
        b'{"verb": "publish", "event": "progress", "detail": 5}\n',
        b'{"verb": "publish", "event": "progress", "data": []}\n',
        b'{"verb": "publish", "event": "progress", "data": {"a": 1e999}}\n',
        b'{"verb": "publish", "event": "progress", "data": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}\n",
        b'{"verb": "publish", "event": "progress", "data": {"a": "' + b"x" * 70_000 + b'"}}\n',
        b'{"verb": "publish", "event": "progress", "detail": "' + b"x" * 70_000 + b'"}\n',
    ],
)  # fmt: skip
def test_nonsense_is_refused_and_changes_nothing(registry: Registry, door: Door, job: Job, data: bytes) -> None:
    before = registry.get(job.job_id)
    refused(say(door, data), 2)
    assert registry.get(job.job_id) == before
    assert ask(door, verb="heartbeat")["ok"]


def test_a_line_of_ten_mebibytes_is_not_read_to_its_end(door: Door) -> None:
    refused(say(door, b"x" * 10 * MIB), 2, "1,048,576")
    refused(say(door, json.dumps({"verb": "complete", "result": "x" * 10 * MIB}).encode() + b"\n"), 2)
    assert ask(door, verb="heartbeat")["ok"]


def test_bytes_after_the_request_are_not_read(registry: Registry, door: Door, job: Job) -> None:
    line = b'{"verb": "publish", "event": "progress"}\n'
    assert say(door, line * 3)["job"]["last_seq"] == 1
    assert registry.get(job.job_id).last_seq == 1


def test_half_a_line_and_then_silence_end_the_connection(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.2)
    with visitor(door) as silent, visitor(door) as halting, visitor(door) as short:
        halting.sendall(b'{"verb": "hea')
        short.sendall(b'{"verb": "complete", "body": 100}\nonly this')
        assert ask(door, verb="heartbeat")["ok"]
        for client in (silent, halting, short):
            refused(heard(client), 9, "in time")


def test_a_client_that_drips_has_no_more_time_than_others(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.3)
    with visitor(door) as client:
        client.settimeout(0.05)
        text = b""
        for _ in range(int(PATIENCE / 0.05)):
            try:
                client.send(b" ")
                text = client.recv(4096)
                break
            except TimeoutError:
                continue
            except BrokenPipeError:
                break
        refused(json.loads(text), 9, "in time")


def test_clients_that_go_away_at_every_byte(door: Door) -> None:
    request = b'{"verb": "complete", "body": 5}\nhello'
    for end in range(len(request) + 1):
        with visitor(door) as client:
            client.sendall(request[:end])
    assert ask(door, verb="heartbeat")["ok"]


def test_a_client_may_close_its_writing_side(door: Door) -> None:
    with visitor(door) as client:
        client.sendall(b'{"verb": "heartbeat"}\n')
        client.shutdown(socket.SHUT_WR)
        assert heard(client)["ok"]


def test_a_thousand_connections_are_bounded(door_server: DoorServer, registry: Registry, door: Door) -> None:
    other = door_server.open(held_job(registry, "codex").job_id, 1, "/")
    crowd: list[socket.socket] = []
    for _ in range(1000):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.setblocking(False)
        crowd.append(client)
        try:
            client.connect(door.address)
        except BlockingIOError:
            client.close()
    assert ask(other, verb="heartbeat")["ok"]
    assert len(door.connections) <= event_loop.MAX_CONNECTIONS
    for client in crowd:
        client.close()
    assert ask(door, verb="heartbeat")["ok"]


def test_a_thousand_requests_are_all_answered(door: Door, job: Job, registry: Registry) -> None:
    program = (
        "import sys; from mam.door_client import DoorClient\n"
        "for _ in range(125): DoorClient(sys.argv[1], None).publish(sys.argv[2], event='progress')"
    )
    crowd = [subprocess.Popen([sys.executable, "-c", program, door.address, job.job_id]) for _ in range(8)]
    assert [process.wait(PATIENCE) for process in crowd] == [0] * 8
    assert registry.get(job.job_id).last_seq == 1000


def test_without_descriptors_the_door_takes_a_breath(door: Door) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with visitor(door) as client:  # its connection is there, and waits to be taken in
        pass
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(PATIENCE)
    most = max(map(int, os.listdir("/proc/self/fd"))) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    spare = []
    try:
        while True:
            spare.append(os.dup(0))
    except OSError:
        pass
    try:
        client.connect(door.address)
        client.sendall(b'{"verb": "heartbeat"}\n')
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in spare:
            os.close(descriptor)
    assert heard(client)["ok"]
    client.close()


def test_slow_readers_hold_up_only_themselves(door_server: DoorServer, registry: Registry, door: Door) -> None:
    through(door).complete(door.scope.job_id, result="x" * 8 * MIB)
    other = door_server.open(held_job(registry, "codex").job_id, 1, "/")
    slow = [visitor(door) for _ in range(20)]
    for client in slow:
        client.sendall(b'{"verb": "get"}\n')
    for client in slow[:2]:
        assert client.recv(1)  # they have been answered, so that the others wait for them
    assert ask(other, verb="heartbeat")["ok"]
    assert door.unsent <= event_loop.UNSENT_LIMIT + 10 * MIB
    for client in slow[:2]:
        client.close()
    answers = [heard(client) for client in slow[2:]]
    assert all(answer["job"]["said"]["result"] == "x" * 8 * MIB for answer in answers)
    for client in slow:
        client.close()
    assert ask(door, verb="heartbeat")["ok"]


def test_a_client_that_never_reads_is_disconnected(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    through(door).complete(door.scope.job_id, result="x" * 8 * MIB)
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.2)
    with visitor(door) as client:
        client.sendall(b'{"verb": "get"}\n')
        assert client.recv(1)
        while door.connections:
            assert ask(door, verb="heartbeat")["ok"]
            if len(door.connections) == 1 and not door.unsent:
                break


def test_long_texts_of_many_are_not_all_kept(door: Door) -> None:
    clients = [visitor(door) for _ in range(8)]
    for client in clients[:3]:
        client.sendall(b'{"verb": "complete", "body": %d}\n' % (8 * MIB))
        client.sendall(b"x")
    assert ask(door, verb="heartbeat")["ok"]  # behind them: they have been read
    for client in clients[3:]:
        client.sendall(b'{"verb": "complete", "body": %d}\n' % (8 * MIB))
        refused(heard(client), 9, "too many")
    for client in clients:
        client.close()
    assert through(door).complete(door.scope.job_id, result="y" * 8 * MIB)


def test_a_slow_store_costs_no_client_its_time(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.3)
    entered, leave = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def get(self, job_id: str) -> Job:
            entered.set()
            assert leave.wait(PATIENCE)
            return super().get(job_id)

    store = Slow()
    leave.set()
    held = held_job(Registry(store))
    leave.clear()
    entered.clear()
    with DoorServer(Registry(store)) as door_server:
        door = door_server.open(held.job_id, 1, "/")
        with visitor(door) as early, visitor(door) as late:
            late.sendall(b'{"verb":')
            early.sendall(b'{"verb": "get"}\n')
            assert entered.wait(PATIENCE)
            time.sleep(0.5)  # the store takes longer than a client may
            late.sendall(b' "resolve"}\n')
            leave.set()
            assert heard(early)["ok"]
            assert heard(late)["ok"]


def test_a_store_in_trouble_is_no_trouble_of_the_doors(door_server: DoorServer, registry: Registry, job: Job) -> None:
    class Broken(MemoryStore):
        def get(self, job_id: str) -> Job:
            raise ZeroDivisionError

        def change(self, job_id: str, act: Act) -> Job:
            raise ZeroDivisionError

    with DoorServer(Registry(Broken())) as broken:
        door = broken.open(job.job_id, 1, "/")
        for _ in range(2):
            refused(ask(door, verb="get"), 9, "ZeroDivisionError")
            refused(ask(door, verb="heartbeat"), 9)
            refused(ask(door, verb="wait", seen={"a": ""}), 9)


# -- other users -------------------------------------------------------------------------------------------------------

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

AS_NOBODY = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(sys.argv[1])
    client.sendall(b'{"verb": "heartbeat"}\\n')
    print(len(client.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


@needs_root
def test_another_user_cannot_connect(door: Door) -> None:
    def tried() -> str:
        asked = subprocess.run([sys.executable, "-c", AS_NOBODY, door.address], capture_output=True, text=True)
        return asked.stdout.strip()

    assert tried() == "PermissionError"
    os.chmod(os.path.dirname(door.address), 0o711)
    assert tried() == "PermissionError"
    os.chmod(door.address, 0o666)
    assert tried() in ("0", "ConnectionResetError", "BrokenPipeError")
    assert ask(door, verb="heartbeat")["ok"]


@needs_root
def test_mam_does_not_connect_to_a_socket_of_another_user(tmp_path: Path) -> None:
    address = "/tmp/mam-test-" + os.urandom(8).hex()
    program = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen()\n"
        "print('listening', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as impostor:  # fmt: skip
        assert impostor.stdout is not None
        assert impostor.stdout.readline()
        try:
            from mam.door_client import DoorClient

            with pytest.raises(StoreUnavailable, match="another user"):
                DoorClient(address, lambda: Registry(MemoryStore()))
        finally:
            impostor.communicate()
            os.unlink(address)
