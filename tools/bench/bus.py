"""Events through a real Mosquitto, compared with paho that does nothing but send."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from compileall import compile_dir
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from mam.bus.relay import Relay
from mam.bus.relay_state import relay_consumer
from mam.bus.settings import Broker
from mam.registry import Registry
from mam.stores.consumer import Consumer, Position
from mam.stores.files.store import FilesStore, create_files_store
from tools.bench.common import LABEL, ROOT, Measured, Row, Rows

ROUNDS = 300
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


class Listening:
    """A process that prints a line for each event, and when the last one came."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._moments: SimpleQueue[float] = SimpleQueue()
        Thread(target=self._read, daemon=True).start()

    def moment(self) -> float:
        return self._moments.get(timeout=LONGEST)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while self.process.stdout.readline():
            self._moments.put(time.perf_counter())


def _latency(folder: Path, port: int) -> Rows:
    """From the call that stores an event to the line that a subscriber prints; each listener is a process.

    A line may come before the call returns: an event is sent once it is durable, and the act has more to do then.
    Signed and unsigned alternate, because the first one finds the processors' caches filled by paho."""
    store = _store(folder)
    registry = Registry(store)
    job = registry.register(prompt="x", agent=LABEL).job.job_id
    signed = store.clock.new_id()
    store.keep_secrets(signed, {"auth_token": "a token for the bench"})
    registry.register(prompt="x", agent=LABEL, job_id=signed)
    env = _env(port)
    bare = Listening(subprocess.Popen([sys.executable, "-c", _LISTEN, str(port)], stdout=subprocess.PIPE))
    bare.moment()
    relay = Listening(_mam(store, env, "relay"))
    words = ("subscribe", job, signed, "--json", "--timeout", "0", "--idle-timeout", "0")
    subscriber = Listening(_mam(store, env, *words))
    client = _client(port)
    client.loop_start()
    log = os.open(folder / "bare.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    took: dict[str, list[float]] = {"paho": [], "disk": [], job: [], signed: []}
    try:
        for turn in range(20 + ROUNDS):
            start = time.perf_counter()
            client.publish("bare/job/events", PAYLOAD, qos=1)
            took["paho"].append(bare.moment() - start)
            start = time.perf_counter()
            os.write(log, PAYLOAD.encode())
            os.fdatasync(log)
            took["disk"].append(time.perf_counter() - start)
            for job_id in (job, signed) if turn % 2 else (signed, job):
                start = time.perf_counter()
                registry.publish(job_id, event="progress", detail="half of the tests pass")
                took[job_id].append(subscriber.moment() - start)
    finally:
        os.close(log)
        for listener in (bare, relay, subscriber):
            listener.end()
        client.disconnect()
        client.loop_stop()
    base, disk, plain, sealed = (statistics.median(times[20:]) for times in took.values())
    against, stored = "paho to paho, QoS 1, nothing stored", "the same, and one bare append with fdatasync"
    return [
        Row("Mosquitto: publish to subscriber, unsigned", against, plain, base, "at most 3"),
        Row("Mosquitto: publish to subscriber, signed", against, sealed, base, "at most 3"),
        Row("Mosquitto: publish to subscriber, signed", stored, sealed, base + disk, "none set"),
    ]


# -- many --------------------------------------------------------------------------------------------------------------


def _throughput(folder: Path, port: int) -> Row:
    """The time for one event when there are many: the journal is full, and a relay begins."""
    store = _store(folder)
    registry = Registry(store)
    jobs = [registry.register(prompt="x", agent=LABEL).job.job_id for _ in range(50)]
    for number in range(EVENTS):
        registry.publish(jobs[number % len(jobs)], event="progress", detail="half of the tests pass")
    broker = Broker(host="127.0.0.1", port=port)
    consumer = relay_consumer(store, broker)
    with_mam, with_paho = [], []
    for turn in range(3):
        _reset(consumer, store.journal_id)
        start = time.perf_counter()
        Relay(store, broker, print).deliver(600)
        with_mam.append(time.perf_counter() - start)
        consumer.load()
        assert consumer.count == EVENTS, f"the relay sent {consumer.count:,} of {EVENTS:,} events"
        with_paho.append(_bare_rate(port, turn))
    return Row(
        f"Mosquitto: one of {EVENTS:,} events through the relay", "paho alone, QoS 1, connecting included",
        statistics.median(with_mam) / EVENTS, statistics.median(with_paho) / EVENTS, "at most 2",
    )  # fmt: skip


def _reset(consumer: Consumer, journal_id: str) -> None:
    """Back to the beginning of the journal, so that the next relay sends every event again."""
    consumer.load()
    consumer.at, consumer.count = Position(epoch=journal_id), 0
    consumer.save()


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
    """Both with their bytecode, as an installed program has it, also if Python is set to write none."""
    compile_dir(ROOT / "src" / "mam", quiet=1)
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
