"""Certificates that openssl makes and signs with their own key."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.needs import program

if TYPE_CHECKING:
    from pathlib import Path


def make_certificate(folder: Path, name: str = "own", *, password: str | None = None) -> tuple[str, str]:
    """The files of a certificate for localhost and of its key."""
    cert, key = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    subprocess.run(
        [
            program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert,
            *(["-nodes"] if password is None else ["-passout", f"pass:{password}"]),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key
