"""What mam's own subscriber received, compared with the store."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from mam.config.settings import Config
from mam.location.stores import locate, open_store
from mam.stores.port import Query
from tests.cli.command import Mam

if TYPE_CHECKING:
    from mam.stores.port import Store
    from tests.bus.mosquitto import Mosquitto

LONGEST = 240.0


def local_store(mam: Mam) -> Store:
    config = Config()
    return open_store(locate(str(mam.here / ".mam" / "jobs"), None, config), config)


def stored_events(mam: Mam) -> set[tuple[str, int]]:
    store = local_store(mam)
    try:
        return {
            (job.job_id, event["seq"])
            for job in store.select(Query())
            for event in store.events(job.job_id)
            if "marker" not in event
        }
    finally:
        store.close()


def numbers(lines: str) -> list[tuple[str, int]]:
    events: list[dict[str, Any]] = [json.loads(line) for line in lines.splitlines()]
    return [(event["job_id"], event["seq"]) for event in events]


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LONGEST)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


def wait_for_stderr(process: subprocess.Popen[bytes], words: str) -> None:
    """Read stderr up to a line that contains this text."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line.decode():
            return
    raise AssertionError(f"it ended without saying {words!r}")


def wait_for_stdout(process: subprocess.Popen[bytes], words: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if words in line.decode():
            return line.decode()
    raise AssertionError(f"it ended without printing {words!r}")


def relay_name(broker: Mosquitto) -> str:
    """The name of the consumer whose position the store holds."""
    return f"relay 127.0.0.1:{broker.port}"


def sent_position(mam: Mam, broker: Mosquitto) -> str | None:
    store = local_store(mam)
    try:
        return store.position(relay_name(broker))
    finally:
        store.close()


def set_sent_position(mam: Mam, broker: Mosquitto, text: str) -> None:
    store = local_store(mam)
    store.save_position(relay_name(broker), text)
    store.close()


def wait_until_sent(mam_mqtt: Mam) -> None:
    """Wait until the relay has saved that the broker has everything, which takes about a second."""
    while mam_mqtt("relay", "--status", "--json").json[0]["waiting"]:
        pass


def wait_for_relay(mam_mqtt: Mam) -> None:
    """Wait until a resident relay sends the events."""
    while not mam_mqtt("relay", "--status", "--json").json[0]["served"]:
        pass
