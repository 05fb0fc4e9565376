"""The certificate of the server: checked before it starts, and read again when it was renewed."""

from __future__ import annotations

import asyncio
import os
import ssl
import time

from mam.errors import BadInput
from mam.util.notices import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LOOK_SECONDS = 60.0
"""How often the server looks whether the files have changed."""


class _Encrypted(Exception):
    pass


def check_certificate(cert: str, key: str) -> None:
    """BadInput in one sentence that names the file."""
    for path in (cert, key):
        _check_readable(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=_refuse)
    except _Encrypted:
        raise BadInput(why=f"the key {key} is encrypted; `openssl pkey -in {key} -out FILE` decrypts it") from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadInput(why=f"the key {key} does not belong to the certificate {cert}") from None
        raise BadInput(why=f"{cert} and {key} are not a certificate and its key in PEM") from None
    if has_expired(cert):
        warn(__name__, f"the certificate {cert} has expired; browsers refuse it")


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise BadInput(why=f"cannot read {path}: {error.strerror}") from None


def _refuse() -> str:
    raise _Encrypted


def has_expired(cert: str) -> bool:
    from _ssl import _test_decode_cert  # type: ignore[attr-defined] # Python brings no other reader of certificates

    return ssl.cert_time_to_seconds(str(_test_decode_cert(cert)["notAfter"])) < time.time()


async def follow_renewals(cert: str, key: str, contexts: Sequence[ssl.SSLContext]) -> None:
    """New connections get the certificate of the changed files. Files that do not fit leave the old one in use."""
    known = _stamps(cert, key)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        found = _stamps(cert, key)
        if found == known:
            continue
        known = found
        try:
            check_certificate(cert, key)
        except BadInput as wrong:
            warn(__name__, f"the certificate has changed and is not used: {wrong}")
            continue
        for context in contexts:
            context.load_cert_chain(cert, key)


def _stamps(*paths: str) -> list[tuple[int, int] | None]:
    """What changes with the content of the files; None for one that is not there."""
    found: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            stat = os.stat(path)
            found.append((stat.st_mtime_ns, stat.st_ino))
        except OSError:
            found.append(None)
    return found
