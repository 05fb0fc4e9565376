"""examples/mosquitto/README.md, typed as written, with answers to its questions."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import socket
import ssl
import time
from pathlib import Path

import pytest

from tests.needs import need

pytestmark = pytest.mark.external

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 60.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Typist:
    """A terminal in which `sh` runs the block; the test reads the output and answers."""

    def __init__(self, script: str, here: Path) -> None:
        self.shown = ""
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(here)
            path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
            os.execve("/bin/sh", ["sh", "-euc", script], {"PATH": path, "HOME": str(here)})

    def answer(self, words: str, text: str) -> None:
        self.until(words)
        self.shown = ""
        os.write(self._descriptor, f"{text}\n".encode())

    def until(self, words: str) -> None:
        ends = time.monotonic() + LONGEST
        while words not in self.shown:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, ends - time.monotonic()))
            assert ready, f"{words!r} did not come: {self.shown}"
            try:
                self.shown += os.read(self._descriptor, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"it ended without {words!r}: {self.shown}") from None

    def stop(self) -> None:
        os.killpg(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        os.close(self._descriptor)


def test_the_page_makes_a_broker_with_tls(tmp_path: Path) -> None:
    need("mosquitto", "mosquitto_passwd", "openssl")
    example = tmp_path / "examples" / "mosquitto"
    shutil.copytree(ROOT / "examples" / "mosquitto", example)
    port = free_port()
    settings = (example / "mosquitto.conf").read_text().replace("listener 8883", f"listener {port} 127.0.0.1")
    # The page describes what root does for files that another user must read; here root stays root.
    (example / "mosquitto.conf").write_text(settings + "user root\n" * (os.geteuid() == 0))
    (script,) = re.findall(r"^```sh\n(.*?)^```$", (example / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    typist = Typist(script, tmp_path)
    try:
        for _user in ("publisher", "observer"):
            typist.answer("Password: ", "a password")
            typist.answer("Reenter password: ", "a password")
        typist.until("running")
        trusted = ssl.create_default_context(cafile=str(example / "certificates/ca.crt"))
        trusted.check_hostname = False  # it was made for broker.example.com
        with socket.create_connection(("127.0.0.1", port), LONGEST) as plain, trusted.wrap_socket(plain) as secure:
            assert secure.version() is not None
    finally:
        typist.stop()
