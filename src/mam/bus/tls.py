"""The TLS context of a broker. Errors name the file that is wrong."""

from __future__ import annotations

import ssl

from mam.errors import BadConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.bus.settings import Broker


def tls_context(broker: Broker) -> ssl.SSLContext:
    for path in (broker.ca_certs, broker.certfile, broker.keyfile):
        if path is not None:
            _read(path)
    try:
        context = ssl.create_default_context(cafile=broker.ca_certs)
    except ssl.SSLError:
        raise BadConfig(file=broker.ca_certs, problem="holds no certificate in PEM form") from None
    if broker.certfile is not None:
        _load_client_certificate(context, broker.certfile, broker.keyfile or broker.certfile)
    elif broker.keyfile is not None:
        raise BadConfig(file=broker.keyfile, problem="is a key without a certificate; set MQTT_CERTFILE")
    return context


def _load_client_certificate(context: ssl.SSLContext, certfile: str, keyfile: str) -> None:
    asked = []

    def passphrase() -> str:
        """Without this callback OpenSSL would ask on the terminal."""
        asked.append(keyfile)
        return ""

    try:
        context.load_cert_chain(certfile, keyfile, password=passphrase)
    except ssl.SSLError as error:
        if b"CERTIFICATE" not in _read(certfile):
            raise BadConfig(file=certfile, problem="holds no certificate in PEM form") from None
        raise BadConfig(
            file=keyfile, problem=_key_problem(error, certfile, keyfile, has_passphrase=bool(asked))
        ) from None


def _key_problem(error: ssl.SSLError, certfile: str, keyfile: str, *, has_passphrase: bool) -> str:
    if has_passphrase:
        return "has a passphrase, which mam cannot ask for; `openssl pkey` makes a copy without one"
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"is not the key of {certfile}"
    more = "; set MQTT_KEYFILE" if keyfile == certfile else ""
    return f"holds no key in PEM form{more}"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise BadConfig(file=path, problem=f"cannot be read for TLS: {problem}") from None
