"""A broker that requires a client certificate of its own authority; and files that are not usable for that."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bus.following import ended, local_store
from tests.bus.mosquitto import Mosquitto
from tests.bus.test_bad_brokers import make_certificates
from tests.cli.command import Mam
from tests.needs import need, program

pytestmark = pytest.mark.external

CONFIG = """
listener {{port}} 127.0.0.1
cafile {0}/ca.crt
certfile {0}/broker.crt
keyfile {0}/broker.key
require_certificate true
use_identity_as_username true
allow_anonymous false
"""


class CertificateBroker:
    """The broker, and the files of a client that it accepts."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        make_certificates(folder, "127.0.0.1")
        self.files = folder / "certificates"
        self._make_client()
        user = "user root\n" if os.geteuid() == 0 else ""
        self.broker = Mosquitto(folder, CONFIG.format(self.files) + user)

    def env(self, **files: str) -> dict[str, str]:
        named = {"MQTT_CA_CERTS": "ca.crt", "MQTT_CERTFILE": "client.crt", "MQTT_KEYFILE": "client.key", **files}
        paths = {name: str(self.files / file) if file else "" for name, file in named.items()}
        return {**self.broker.env, "MQTT_TLS": "1", **paths}

    def _make_client(self) -> None:
        self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "client.key")
        self._openssl("req", "-new", "-key", "client.key", "-subj", "/CN=client", "-out", "client.csr")
        self._openssl(
            "x509", "-req", "-in", "client.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", "client.crt",
        )  # fmt: skip
        self._openssl("pkey", "-in", "client.key", "-aes256", "-passout", "pass:word", "-out", "locked.key")
        (self.files / "both.pem").write_bytes(
            (self.files / "client.crt").read_bytes() + (self.files / "client.key").read_bytes()
        )
        (self.files / "text").write_text("no such thing\n")

    def _openssl(self, *words: str) -> None:
        subprocess.run([program("openssl"), *words], cwd=self.files, check=True, capture_output=True)


@pytest.fixture
def certificate_broker(tmp_path: Path) -> Iterator[CertificateBroker]:
    need("mosquitto", "openssl")
    made = CertificateBroker(tmp_path / "choosy")
    yield made
    made.broker.stop()


@pytest.mark.parametrize("files", [{}, {"MQTT_CERTFILE": "both.pem", "MQTT_KEYFILE": ""}])
def test_a_client_with_a_certificate_is_accepted(
    mam: Mam, certificate_broker: CertificateBroker, files: dict[str, str]
) -> None:
    mam.env.update(certificate_broker.env(**files))
    job = mam.register()
    subscriber = mam.start("subscribe", job)

    assert mam("publish", job, "started").stderr == ""
    assert mam("publish", job, "completed").stderr == ""

    assert ended(subscriber)[::2] == (0, "")
    assert mam("relay", "--status", "--json").json[0]["sent"] == 2


WRONG = {
    "none is shown": ({"MQTT_CERTFILE": "", "MQTT_KEYFILE": ""}, "it may require a client certificate"),
    "the key is missing": ({"MQTT_KEYFILE": ""}, "client.crt: holds no key in PEM form; set MQTT_KEYFILE"),
    "the key is locked": ({"MQTT_KEYFILE": "locked.key"}, "locked.key: has a passphrase"),
    "the key is another's": ({"MQTT_KEYFILE": "broker.key"}, "broker.key: is not the key of "),
    "the key is none": ({"MQTT_KEYFILE": "text"}, "text: holds no key in PEM form."),
    "the certificate is missing": ({"MQTT_CERTFILE": ""}, "client.key: is a key without a certificate"),
    "the certificate is not there": ({"MQTT_CERTFILE": "gone"}, "gone: cannot be read for TLS: no such file"),
    "the certificate is none": ({"MQTT_CERTFILE": "text"}, "text: holds no certificate in PEM form"),
    "the authority is not there": ({"MQTT_CA_CERTS": "gone"}, "gone: cannot be read for TLS: no such file"),
    "the authority is none": ({"MQTT_CA_CERTS": "text"}, "text: holds no certificate in PEM form"),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_name_the_file_and_the_event_waits(mam: Mam, certificate_broker: CertificateBroker, what: str) -> None:
    files, words = WRONG[what]
    job = mam.register()
    mam.env.update(certificate_broker.env(**files))

    ran = mam("publish", job, "progress")

    assert ran.line == "1"
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert words in ran.stderr
    assert "waits in the journal" in ran.stderr
    assert [event["seq"] for event in local_store(mam).events(job)] == [1]
    relayed = mam("relay", "--once")
    assert relayed.code in (2, 9)
    assert words in relayed.stderr
    mam.env.update(certificate_broker.env())
    assert mam("relay", "--once").code == 0
    assert mam("relay", "--status", "--json").json[0]["waiting"] == 0
