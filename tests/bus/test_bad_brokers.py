"""Broken brokers: a clear error, nothing lost, nothing changed."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam.bus.relay import Relay
from mam.bus.settings import Broker
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from tests.bus.following import ended, local_store, wait_for_relay, wait_for_stderr, wait_for_stdout, wait_until_sent
from tests.bus.mosquitto import Mosquitto, Reader, as_parts
from tests.cli.command import Mam
from tests.needs import need

_CONNACK = bytes([0x20, 0x03, 0x00, 0x00, 0x00])


class OddBroker:
    """A server that sends a fixed answer, and then keeps the connection open or closes it."""

    def __init__(self, answer: bytes, *, hangs_up: bool = False) -> None:
        self._answer, self._hangs_up = answer, hangs_up
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.got = b""
        self.asked = threading.Event()
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(30)
        for connection in self._open:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.got += connection.recv(65536)
            if self._answer:
                connection.sendall(self._answer)
            self.asked.set()
            if self._hangs_up:
                connection.close()
            else:
                self._open.append(connection)


ODD = {
    "says nothing": (b"", False, "does not answer"),
    "hangs up": (b"", True, "closed the connection at once; it may require TLS (MQTT_TLS=1)"),
    "speaks something else": (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, "127.0.0.1"),
    "sends garbage": (bytes(range(256)), False, "127.0.0.1"),
    "says yes and then nothing": (_CONNACK, False, "in time"),
    "refuses the login": (bytes([0x20, 0x03, 0x00, 0x87, 0x00]), False, "refused the login (Not authorized)"),
    "has no idea of MQTT 5": (bytes([0x20, 0x02, 0x00, 0x01]), False, "closed the connection at once"),
    "takes no event": (_CONNACK + bytes([0x40, 0x04, 0x00, 0x01, 0x87, 0x00]), False, "rejected an event"),
    "answers what was not asked": (_CONNACK + bytes([0x40, 0x02, 0x77, 0x77]), False, "127.0.0.1"),
    "an endless length": (bytes([0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), False, "127.0.0.1"),
}


@pytest.fixture(params=ODD)
def odd_broker(request: pytest.FixtureRequest) -> Iterator[tuple[OddBroker, str]]:
    answer, hangs_up, words = ODD[request.param]
    made = OddBroker(answer, hangs_up=hangs_up)
    yield made, words
    made.close()


def test_an_event_is_stored_even_if_the_broker_fails(mam: Mam, odd_broker: tuple[OddBroker, str]) -> None:
    broker, words = odd_broker
    job = mam.register()

    ran = mam("publish", job, "started", MQTT_BROKER="127.0.0.1", MQTT_PORT=str(broker.port))

    assert ran.line == "1"
    lines = ran.stderr.splitlines()
    assert len(lines) == 1, ran.stderr
    assert lines[0].startswith("mam: ")
    assert words in lines[0]
    assert "waits in the journal" in lines[0]
    assert [event["seq"] for event in local_store(mam).events(job)] == [1]
    status = mam("relay", "--status", "--json", MQTT_BROKER="127.0.0.1", MQTT_PORT=str(broker.port)).json[0]
    assert (status["waiting"], status["sent"]) == (1, 0)


def test_a_subscriber_falls_back_to_the_store(mam: Mam, odd_broker: tuple[OddBroker, str]) -> None:
    broker, _ = odd_broker
    job = mam.register()
    mam.env.update(MQTT_BROKER="127.0.0.1", MQTT_PORT=str(broker.port))
    subscriber = mam.start("subscribe", job)
    wait_for_stderr(subscriber, "Following the store meanwhile")

    mam("complete", job, MQTT_BROKER="")

    assert ended(subscriber) == (0, f"{job}\t1\tcompleted\tcompleted\n", "")


@pytest.mark.parametrize("answer", [b"", _CONNACK])
def test_a_relay_that_is_to_stop_does_not_wait_for_an_answer_for_ever(mam: Mam, answer: bytes) -> None:
    broker = OddBroker(answer)
    job = mam.register()
    mam("publish", job, "started")
    mam.env.update(MQTT_BROKER="127.0.0.1", MQTT_PORT=str(broker.port))
    relay = mam.start("relay")
    assert broker.asked.wait(60)

    relay.terminate()
    relay.send_signal(signal.SIGINT)
    code, out, err = ended(relay)
    broker.close()

    assert (code, out) == (0, "")
    assert err.splitlines()[-1].startswith("mam: stopped before the broker answered")
    assert mam("relay", "--status", "--json").json[0]["waiting"] == 1


def test_a_broker_that_accepts_a_login_and_then_stays_silent_is_not_reported_as_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("mam.bus.relay.ANSWER_SECONDS", 0.01)
    broker, store = OddBroker(_CONNACK), MemoryStore()
    Registry(store).publish(Registry(store).register(prompt="x", agent="a").job.job_id, event="started")
    said, naps = list[str](), list[float]()

    def wait(_place: str | None, seconds: float) -> bool:
        naps.append(seconds)
        return True

    Relay(store, Broker(host="127.0.0.1", port=broker.port), said.append).run(lambda: len(naps) > 5, wait)
    broker.close()

    assert len(said) == 1
    assert "did not acknowledge all events in time. Events wait in the journal" in said[0]
    assert naps[-1] > 4 * naps[0]


def test_a_broker_that_hangs_loses_nothing(mam_mqtt: Mam, broker: Mosquitto) -> None:
    """The connection is half open: the kernel accepts every byte, and no process reads them."""
    job = mam_mqtt.register()
    subscriber, relay = mam_mqtt.start("subscribe", job), mam_mqtt.start("relay")
    wait_for_relay(mam_mqtt)
    mam_mqtt("publish", job, "started")
    wait_for_stdout(subscriber, "started")
    broker.process.send_signal(signal.SIGSTOP)

    assert mam_mqtt("publish", job, "progress").stderr == ""
    wait_for_stderr(relay, "did not acknowledge all events in time. Events wait in the journal")
    broker.process.send_signal(signal.SIGCONT)
    wait_for_stderr(relay, "is available again")
    mam_mqtt("publish", job, "completed")

    code, out, _ = ended(subscriber)
    assert (code, [line.split("\t")[1] for line in out.splitlines()]) == (0, ["2", "3"])
    wait_until_sent(mam_mqtt)


# -- TLS and passwords -------------------------------------------------------------------------------------------------


def test_a_relay_with_a_wrong_password_reports_it_and_sends_later(mam: Mam, secure: Secure) -> None:
    mam.env.update(secure.env("publisher"), MQTT_PASSWORD="wrong-and-secret")
    job = mam.register()
    relay = mam.start("relay")
    wait_for_stderr(relay, "refused the login")
    ran = mam("publish", job, "started")
    assert (ran.code, ran.stderr) == (0, "")
    relay.terminate()
    code, _, err = ended(relay)
    assert code == 0
    assert "wrong-and-secret" not in err

    mam.env.update(secure.env("publisher"))
    reader = secure.reader()
    assert mam("relay", "--once").code == 0
    assert as_parts(reader.take(1)[0])[2]["job_id"] == job


def test_a_broker_with_another_certificate_is_not_trusted(mam: Mam, secure: Secure, tmp_path: Path) -> None:
    job = mam.register()
    other = tmp_path / "other"
    other.mkdir()
    make_certificates(other, "localhost")
    mam.env.update(secure.env("publisher"))

    strange = mam("publish", job, "progress", MQTT_CA_CERTS=str(other / "certificates" / "ca.crt"))
    unknown = mam("publish", job, "progress", MQTT_CA_CERTS="")
    misnamed = mam("publish", job, "progress", MQTT_BROKER="localhost")
    plain = mam("publish", job, "progress", MQTT_TLS="0")

    for ran in (strange, unknown, misnamed):
        assert ran.code == 0
        assert "a certificate that is not trusted" in ran.stderr
    assert "waits in the journal" in plain.stderr
    assert len(local_store(mam).events(job)) == 4


def test_tls_to_a_broker_without_it_is_refused(mam: Mam, broker: Mosquitto) -> None:
    job = mam.register()

    ran = mam("publish", job, "progress", MQTT_TLS="1", MQTT_BROKER="127.0.0.1", MQTT_PORT=str(broker.port))

    assert ran.code == 0
    assert "waits in the journal" in ran.stderr


# -- the example -------------------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mosquitto"


def make_certificates(folder: Path, *names: str) -> None:
    import subprocess

    subprocess.run([EXAMPLE / "make-certificates.sh", *names], cwd=folder, check=True, capture_output=True)


class Secure:
    """The files of examples/mosquitto, with made-up passwords, unchanged except for the port."""

    def __init__(self, folder: Path) -> None:
        import os
        import shutil
        import subprocess

        from tests.needs import program

        folder.mkdir()
        make_certificates(folder, "127.0.0.1")
        shutil.copy(EXAMPLE / "acl", folder)
        (folder / "data").mkdir()
        self.passwords = {"publisher": os.urandom(12).hex(), "observer": os.urandom(12).hex()}
        (folder / "passwords").touch(0o600)
        for user, password in self.passwords.items():
            subprocess.run([program("mosquitto_passwd"), "-b", folder / "passwords", user, password], check=True)
        self.ca = folder / "certificates" / "ca.crt"
        config = (EXAMPLE / "mosquitto.conf").read_text().replace("listener 8883", "listener {port} 127.0.0.1")
        for name in ("passwords", "acl", "certificates/", "data/"):
            config = config.replace(f" {name}", f" {folder}/{name}")
        user = "user root\n" if os.geteuid() == 0 else ""
        self.broker = Mosquitto(folder, config + user)

    def env(self, user: str) -> dict[str, str]:
        return {
            "MQTT_BROKER": "127.0.0.1", "MQTT_PORT": str(self.broker.port), "MQTT_TLS": "1",
            "MQTT_CA_CERTS": str(self.ca), "MQTT_USERNAME": user, "MQTT_PASSWORD": self.passwords[user],
        }  # fmt: skip

    def words(self, user: str) -> list[str]:
        return ["--cafile", str(self.ca), "-u", user, "-P", self.passwords[user]]

    def reader(self, user: str = "observer", topic: str = "python/mqtt/jobs/+/events") -> Reader:
        return Reader(self.broker, *self.words(user), topic=topic)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    need("mosquitto", "openssl")
    made = Secure(tmp_path / "secure")
    yield made
    made.broker.stop()


def test_the_example_s_broker_can_read_its_key_but_not_the_authority_s(secure: Secure) -> None:
    folder = secure.ca.parent
    modes = {file.name: file.stat().st_mode & 0o777 for file in (folder, *folder.iterdir())}
    assert modes["certificates"] == 0o711
    assert modes["ca.key"] == modes["broker.key"] == 0o600


def test_the_example_delivers_events(mam: Mam, secure: Secure) -> None:
    job = mam.register("x", "--sign")
    mam.env.update(secure.env("observer"))
    subscriber = mam.start("subscribe", job)
    reader = secure.reader()

    mam.env.update(secure.env("publisher"))
    mam("publish", job, "started")
    mam("publish", job, "completed")

    assert [as_parts(line)[2]["seq"] for line in reader.take(2)] == [1, 2]
    code, out, err = ended(subscriber)
    assert (code, len(out.splitlines())) == (0, 2)
    assert err == ""


def test_an_observer_cannot_publish(mam: Mam, secure: Secure) -> None:
    job = mam.register()
    mam.env.update(secure.env("observer"))
    reader = secure.reader()

    refused = mam("publish", job, "started")
    assert "rejected an event (Not authorized)" in refused.stderr
    mam.env.update(secure.env("publisher"))
    mam("publish", job, "progress")

    assert [as_parts(line)[2]["seq"] for line in reader.take(2)] == [1, 2]


def test_a_publisher_can_write_nowhere_else_and_read_nothing(mam: Mam, secure: Secure) -> None:
    from tests.bus.mosquitto import send

    reader = secure.reader(topic="#")
    for topic in ("elsewhere", "python/mqtt/jobs/x/logs", "python/mqtt/jobs/x/y/events", "$SYS/broker/x"):
        try:
            send(secure.broker, topic, b"no", *secure.words("publisher"))
        except Exception as refused:
            assert "mosquitto_pub" in str(refused)  # noqa: PT017 - some versions tell it by their exit code
    send(secure.broker, "python/mqtt/jobs/x/events", b'{"yes": 1}', *secure.words("publisher"))
    deaf = secure.reader("publisher", topic="python/mqtt/jobs/+/events")
    send(secure.broker, "python/mqtt/jobs/x/events", b'{"yes": 2}', *secure.words("publisher"))

    assert [as_parts(line)[2] for line in reader.take(2)] == [{"yes": 1}, {"yes": 2}]
    deaf.process.terminate()
    assert deaf.process.stdout is not None
    assert not [line for line in deaf.process.stdout if line.startswith("> ")]


@pytest.mark.parametrize("words", [[], ["-u", "publisher"], ["-u", "publisher", "-P", "guess"], ["-u", "#", "-P", "x"]])
def test_a_login_without_a_password_is_rejected(secure: Secure, words: list[str]) -> None:
    from subprocess import CalledProcessError

    from tests.bus.mosquitto import send

    with pytest.raises(CalledProcessError):
        send(secure.broker, "python/mqtt/jobs/x/events", b"no", "--cafile", str(secure.ca), *words)
