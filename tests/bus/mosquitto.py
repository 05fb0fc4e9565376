"""A real broker for tests, on a free port of this host, and a reader that is not part of mam."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.needs import program
from tests.waiting import await_that

LONGEST = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Mosquitto:
    """Starts at once; `kill` is -9, and `start` restarts it on the same port."""

    def __init__(self, folder: Path, config: str | None = None, port: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.readers: list[Reader] = []
        self.port = port or free_port()
        self.config = folder / "mosquitto.conf"
        text = config or "listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
        self.config.write_text(text.replace("{port}", str(self.port)))
        self.start()

    def start(self) -> None:
        server = program("mosquitto")
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen([server, "-c", str(self.config)], stdout=log, stderr=log)
        log.close()
        self._until_listening()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LONGEST)

    def stop(self) -> None:
        for reader in self.readers:
            reader.stop()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(LONGEST)

    @property
    def env(self) -> dict[str, str]:
        return {"MQTT_BROKER": "127.0.0.1", "MQTT_PORT": str(self.port)}

    def _until_listening(self) -> None:
        def is_listening() -> bool:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        await_that(is_listening, "the broker does not listen")


class Reader:
    """mosquitto_sub: what another program receives, one line per message."""

    def __init__(self, broker: Mosquitto, *words: str, topic: str = "python/mqtt/jobs/+/events") -> None:
        argv = [program("mosquitto_sub"), "-V", "5", "-q", "1", "-h", "127.0.0.1", "-p", str(broker.port), "-d"]
        argv += ["-t", topic, "-F", "> %r %t %p", *words]
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", *argv], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        broker.readers.append(self)
        self._until("SUBACK")

    def take(self, count: int) -> list[str]:
        """Read this many messages: `retained topic payload`."""
        return [self._until("> ")[2:].rstrip("\n") for _ in range(count)]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait()

    def _until(self, mark: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(mark) or (mark == "SUBACK" and mark in line):
                return line
        raise AssertionError("mosquitto_sub has ended")


def send(broker: Mosquitto, topic: str, message: bytes, *words: str) -> None:
    """Send a message that is not mam's."""
    subprocess.run(
        [program("mosquitto_pub"), "-V", "5", "-q", "1", "-h", "127.0.0.1", "-p", str(broker.port), "-t", topic,
         "-s" if message else "-n", *words],
        input=message, check=True, capture_output=True, timeout=LONGEST,
    )  # fmt: skip


def as_parts(line: str) -> tuple[bool, str, Any]:
    import json

    retained, topic, payload = line.split(" ", 2)
    return retained == "1", topic, json.loads(payload)
