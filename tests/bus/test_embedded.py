"""`mam broker`: a broker for trying things out."""

from __future__ import annotations

import signal

import pytest

from tests.bus.following import ended, wait_for_stderr
from tests.bus.mosquitto import free_port
from tests.cli.command import Mam

pytestmark = pytest.mark.external


def test_it_delivers_events_on_this_host(mam: Mam) -> None:
    port = str(free_port())
    broker = mam.start("broker", "--port", port)
    wait_for_stderr(broker, f"127.0.0.1:{port}")
    mam.env.update(MQTT_BROKER="127.0.0.1", MQTT_PORT=port)
    job = mam.register("x", "--sign")
    subscriber = mam.start("subscribe", job)

    assert mam("publish", job, "started").stderr == ""
    assert mam("publish", job, "completed").stderr == ""
    assert ended(subscriber)[0] == 0
    mam("broker", "--port", port).failed(9, "cannot be started (address already in use).")
    broker.send_signal(signal.SIGINT)

    assert ended(broker)[0] == 0


def test_a_port_is_a_port(mam: Mam) -> None:
    mam("broker", "--port", "0").failed(2, "--port")
