"""`mam publish` with a broker: the event is stored first, then sent by a resident relay or by the command itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bus.following import ended, local_store, wait_for_relay, wait_for_stderr
from tests.bus.mosquitto import Mosquitto, Reader, as_parts
from tests.cli.command import Mam

pytestmark = pytest.mark.external


def test_an_event_reaches_a_reader_that_is_not_ours(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    reader = Reader(broker)

    assert mam_mqtt("publish", job, "started").line == "1"
    assert (
        mam_mqtt("publish", job, "progress", "--detail", "at /home/me/secret/file.txt", "--data", '{"a": 1}').line
        == "2"
    )
    lines = [as_parts(line) for line in reader.take(2)]
    reader.stop()

    assert [topic for _, topic, _ in lines] == [f"python/mqtt/jobs/{job}/events"] * 2
    assert [payload for _, _, payload in lines] == local_store(mam_mqtt).events(job)
    assert lines[1][2]["detail"] == "at …/file.txt"
    assert [retained for retained, _, _ in lines] == [False, False]


def test_the_broker_retains_terminal_events_for_late_subscribers(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    mam_mqtt("publish", job, "started")
    mam_mqtt("publish", job, "completed", "--detail", "done")

    late = Reader(broker)
    retained, _, payload = as_parts(late.take(1)[0])
    late.stop()

    assert retained
    assert (payload["event"], payload["seq"], payload["data"]) == ("completed", 2, {"status": "completed"})


def test_without_a_broker_nothing_of_mqtt_is_even_imported(mam: Mam) -> None:
    job = mam.register()

    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mam", "publish", job, "progress"],
        capture_output=True, text=True, cwd=mam.here, env=mam.env,
    )  # fmt: skip

    assert ran.returncode == 0
    assert "paho" not in ran.stderr
    assert "mam.bus.relay" not in ran.stderr


def test_a_running_relay_is_left_to_do_it(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    reader = Reader(broker)
    relay = mam_mqtt.start("relay")
    wait_for_stderr(relay, "sending the events")
    wait_for_relay(mam_mqtt)

    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mam", "publish", job, "progress"],
        capture_output=True, text=True, cwd=mam_mqtt.here, env=mam_mqtt.env,
    )  # fmt: skip
    payload = as_parts(reader.take(1)[0])[2]
    reader.stop()
    relay.terminate()

    assert ended(relay)[0] == 0
    assert payload["seq"] == 1
    assert "paho" not in ran.stderr


def test_the_mqtt_client_loads_http_only_when_it_is_used() -> None:
    program = (
        "import sys, mam.bus.client\n"
        "print('http.client' in sys.modules)\n"
        "import urllib.request\n"
        "print(hasattr(urllib.request, 'proxy_bypass'), urllib.request.getproxies()['mqtt'])\n"
        "print(urllib.request is sys.modules['urllib.request'], 'http.client' in sys.modules)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"mqtt_proxy": "socks://here:1"}
    )

    assert ran.stderr == ""
    assert ran.stdout.split() == ["False", "True", "socks://here:1", "True", "True"]


def test_an_unreachable_broker_only_delays_events(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    broker.kill()

    ran = mam_mqtt("publish", job, "started")

    assert ran.line == "1"
    assert f"127.0.0.1:{broker.port} cannot be reached" in ran.stderr
    assert "waits in the journal" in ran.stderr
    broker.start()
    reader = Reader(broker)
    mam_mqtt("publish", job, "progress")
    assert [as_parts(line)[2]["seq"] for line in reader.take(2)] == [1, 2]
    reader.stop()


def test_many_at_once_are_all_sent_in_order(mam_mqtt: Mam, broker: Mosquitto) -> None:
    jobs = [mam_mqtt.register() for _ in range(4)]
    reader = Reader(broker)

    for _ in range(3):
        started = [mam_mqtt.start("publish", job, "progress") for job in jobs]
        assert [ended(process)[0] for process in started] == [0] * 4
    received = [as_parts(line)[2] for line in reader.take(12)]
    reader.stop()

    for job in jobs:
        assert [payload["seq"] for payload in received if payload["job_id"] == job] == [1, 2, 3]
    assert mam_mqtt("relay", "--status", "--json").json[0]["waiting"] == 0


def test_a_broker_elsewhere_without_tls_is_refused(mam: Mam) -> None:
    job = mam.register()

    ran = mam("publish", job, "progress", MQTT_BROKER="192.0.2.1")

    assert ran.line == "1"
    assert "192.0.2.1:1883 is on another host and has no TLS" in ran.stderr
    assert "--insecure-broker" in ran.stderr
    mam("relay", MQTT_BROKER="192.0.2.1").failed(2, "has no TLS")
    mam("subscribe", job, MQTT_BROKER="192.0.2.1").failed(2, "has no TLS")


def test_a_broker_that_needs_no_tls_is_on_this_very_host(mam: Mam) -> None:
    job = mam.register()

    for host in ("127.example.com", "127.0.0.1.example.com", "127.0.0.256", "localhost.example.com", "0.0.0.0"):
        assert "has no TLS" in mam("publish", job, "progress", MQTT_BROKER=host).stderr, host


def test_host_and_port_may_be_written_in_one(mam: Mam, broker: Mosquitto) -> None:
    job = mam.register()

    assert mam("publish", job, "progress", MQTT_BROKER=f"localhost:{broker.port}").stderr == ""


def test_invalid_settings_are_reported_and_the_event_is_stored(mam: Mam) -> None:
    job = mam.register()

    for host, port, tls, ca in (
        ("127.0.0.1", "0", "", ""), ("127.0.0.1", "x", "", ""), ("127.0.0.1", "", "maybe", ""),
        ("user:pw@host", "", "", ""), ("a b", "", "", ""), ("127.0.0.1", "", "1", "/nowhere/ca.pem"),
    ):  # fmt: skip
        ran = mam("publish", job, "progress", MQTT_BROKER=host, MQTT_PORT=port, MQTT_TLS=tls, MQTT_CA_CERTS=ca)
        assert ran.code == 0
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert "stored" in ran.stderr
    assert len(local_store(mam).events(job)) == 6
