"""The news through a real Mosquitto, against paho alone doing nothing but sending."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from mam.bus.relay import Relay
from mam.bus.settings import Broker
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from tools.bench.common import LABEL, Measured, Row, Rows

TURNS = 300
EVENTS = 5_000
PROCESSES = 15
LONGEST = 60.0

_LISTEN = """
import sys
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
def on_message(client, userdata, message):
    sys.stdout.write(message.payload.decode() + "\\n"); sys.stdout.flush()
client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
client.on_message = on_message
client.on_subscribe = lambda *_: (sys.stdout.write("ready\\n"), sys.stdout.flush())
client.connect("127.0.0.1", int(sys.argv[1]))
client.subscribe("bare/+/events", qos=1)
client.loop_forever()
"""
_PUBLISH = """
import sys
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
client.on_connect = lambda *_: client.publish("bare/job/events", sys.argv[2], qos=1)
client.on_publish = lambda *_: client.disconnect()
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
"""
PAYLOAD = (
    '{"schema_version":1,"seq":1,"job_id":"0123456789abcdef0123456789abcdef","event":"progress",'
    '"timestamp":"2026-01-01T00:00:00Z","detail":"half of the tests pass","data":{}}'
)


def measure_bus(folder: Path) -> Rows:
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        print("mosquitto not found: the news is not measured", file=sys.stderr)
        return []
    with _mosquitto(folder, program) as port:
        return [
            *_latency(folder / "latency", port),
            _throughput(folder / "rate", port),
            _command(folder / "start", port),
        ]


# -- one event ---------------------------------------------------------------------------------------------------------


def _latency(folder: Path, port: int) -> Rows:
    """From the call that stores an event to the line that a subscriber prints; each listener is a process."""
    rows: Rows = []
    store = _store(folder)
    registry = Registry(store)
    job = registry.register(prompt="x", agent=LABEL).job.job_id
    signed = store.clock.new_id()
    store.keep_secrets(signed, {"auth_token": "a token for the bench"})
    registry.register(prompt="x", agent=LABEL, job_id=signed)
    env = _env(port)
    bare = subprocess.Popen([sys.executable, "-c", _LISTEN, str(port)], stdout=subprocess.PIPE)
    _line(bare)
    relay = _mam(store, env, "relay")
    subscriber = _mam(store, env, "subscribe", job, signed, "--json", "--timeout", "0", "--idle-timeout", "0")
    client = _client(port)
    client.loop_start()
    try:

        def with_paho() -> None:
            client.publish("bare/job/events", PAYLOAD, qos=1)
            _line(bare)

        def with_mam(job_id: str) -> Callable[[], None]:
            def do() -> None:
                registry.publish(job_id, event="progress", detail="half of the tests pass")
                stored = time.perf_counter()
                _line(subscriber)
                on_the_way[job_id].append(time.perf_counter() - stored)

            return do

        on_the_way: dict[str, list[float]] = {job: [], signed: []}
        things = {"paho": with_paho, job: with_mam(job), signed: with_mam(signed)}
        Measured(20, things)
        measured = Measured(TURNS, things)
    finally:
        for process in (bare, relay, subscriber):
            process.kill()
            process.communicate()
        client.disconnect()
        client.loop_stop()
    base = measured.median("paho")
    for name, what in ((job, "unsigned"), (signed, "signed")):
        whole, way = measured.median(name), statistics.median(on_the_way[name][-TURNS:])
        rows += [
            Row(
                f"Mosquitto: publish to subscriber, {what}",
                "paho to paho, QoS 1, nothing stored",
                whole,
                base,
                "at most 3",
            ),
            Row(f"Mosquitto: the same, once it is stored, {what}", "paho to paho, QoS 1", way, base, "none set"),
        ]
    return rows


# -- many --------------------------------------------------------------------------------------------------------------


def _throughput(folder: Path, port: int) -> Row:
    """The time for one event when there are many: the journal is full, and a relay begins."""
    store = _store(folder)
    registry = Registry(store)
    jobs = [registry.register(prompt="x", agent=LABEL).job.job_id for _ in range(50)]
    for number in range(EVENTS):
        registry.publish(jobs[number % len(jobs)], event="progress", detail="half of the tests pass")
    with_mam, with_paho = [], []
    for turn in range(3):
        for file in Path(str(store.home)).glob("relay-*"):
            file.unlink()
        start = time.perf_counter()
        Relay(store, Broker(host="127.0.0.1", port=port), print).deliver(600)
        with_mam.append(time.perf_counter() - start)
        with_paho.append(_bare_rate(port, turn))
    return Row(
        f"Mosquitto: one of {EVENTS:,} events through the relay", "paho alone, QoS 1, connecting included",
        statistics.median(with_mam) / EVENTS, statistics.median(with_paho) / EVENTS, "at most 2",
    )  # fmt: skip


def _bare_rate(port: int, turn: int) -> float:
    start = time.perf_counter()
    client = _client(port)
    client.loop_start()
    sent = [client.publish(f"bare/{turn}/events", PAYLOAD, qos=1) for _ in range(EVENTS)]
    for message in sent:
        message.wait_for_publish(LONGEST)
    client.disconnect()
    client.loop_stop()
    return time.perf_counter() - start


# -- a command ---------------------------------------------------------------------------------------------------------


def _command(folder: Path, port: int) -> Row:
    store = _store(folder)
    job = Registry(store).register(prompt="x", agent=LABEL).job.job_id
    env = _env(port)

    def bare() -> None:
        subprocess.run([sys.executable, "-c", _PUBLISH, str(port), PAYLOAD], check=True)

    def mam() -> None:
        subprocess.run(
            [sys.executable, "-m", "mam", "--store", store.address, "publish", job, "progress"],
            check=True, env=env, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    things = {"paho": bare, "mam": mam}
    Measured(2, things)
    measured = Measured(PROCESSES, things)
    return Row(
        "Mosquitto: `mam publish` without door or relay", "a process that only sends with paho",
        measured.median("mam"), measured.median("paho"), "at most 1.3",
    )  # fmt: skip


# -- shared ------------------------------------------------------------------------------------------------------------


@contextmanager
def _mosquitto(folder: Path, program: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    config = folder / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
    process = subprocess.Popen([program, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + LONGEST
        while time.monotonic() < ends:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait(LONGEST)


def _store(folder: Path) -> FilesStore:
    create_files_store(str(folder))
    return FilesStore(str(folder))


def _env(port: int) -> dict[str, str]:
    return {**os.environ, "MQTT_BROKER": "127.0.0.1", "MQTT_PORT": str(port), "MAM_CONFIG": os.devnull}


def _mam(store: FilesStore, env: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mam", "--store", store.address, *words], env=env, stdout=subprocess.PIPE
    )


def _client(port: int) -> Client:
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.connect("127.0.0.1", port)
    return client


def _line(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    if not process.stdout.readline():
        raise RuntimeError("the listener has ended")
