"""A process started by nohup ignores a hangup and serves what comes after it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.bus.conftest import Tracked
from tests.bus.following import ended, wait_for_stderr
from tests.bus.mosquitto import Mosquitto, Reader, as_parts, free_port
from tests.cli.command import Mam

pytestmark = pytest.mark.external


def _after_hangup(mam: Mam, says: str, *words: str) -> subprocess.Popen[bytes]:
    assert isinstance(mam, Tracked)
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "mam", *words], cwd=mam.here, env=mam.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    mam.started.append(process)
    wait_for_stderr(process, says)
    process.send_signal(signal.SIGHUP)
    return process


def test_a_relay_sends_what_comes_after_a_hangup(mam: Mam, broker: Mosquitto) -> None:
    job = mam.register()
    mam.env.update(broker.env)
    relay = _after_hangup(mam, "sending the events", "relay")
    reader = Reader(broker)
    del mam.env["MQTT_BROKER"]  # so that only the relay can send it
    mam("publish", job, "started")

    assert as_parts(reader.take(1)[0])[1] == f"python/mqtt/jobs/{job}/events"
    relay.terminate()
    assert ended(relay)[0] == 0


def test_a_broker_carries_what_comes_after_a_hangup(mam: Mam) -> None:
    port = str(free_port())
    broker = _after_hangup(mam, f"127.0.0.1:{port}", "broker", "--port", port)
    mam.env.update(MQTT_BROKER="127.0.0.1", MQTT_PORT=port)

    assert mam("publish", mam.register(), "started").stderr == ""
    broker.terminate()
    assert ended(broker)[0] == 0
