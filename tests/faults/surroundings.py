"""What some commands need beside a store so that they can be killed too: a broker, an inbox, a store to copy.

At the end each of them checks its promise.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mam.errors import StoreMissing, StoreUnavailable
from tests.bus.mosquitto import Mosquitto, Reader
from tests.maintenance.registries import contents, furnish, made, opened
from tests.needs import need

if TYPE_CHECKING:
    from mam.stores.port import Store
    from tests.faults.store_kinds import StoreKind

HOOK = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "session_id": "s"}
PATIENCE = 60.0


class Services:
    def __init__(self, store_kind: StoreKind, folder: Path) -> None:
        need("mosquitto", "mosquitto_sub")
        self._inbox = folder / "root/inbox/acme/shop/main"
        self._inbox.mkdir(parents=True)
        self._dropped: list[str] = []
        (folder / "hook.json").write_text(json.dumps(HOOK), encoding="utf-8")
        self._target = folder / "moved"
        self.names = {"origin": store_kind.address(folder / "origin"), "moved": store_kind.address(self._target)}
        store = made(self.names["origin"])
        furnish(store, 12)
        self._contents = contents(store)
        self._broker = Mosquitto(folder / "broker")
        self._reader = Reader(self._broker)
        self.names["port"] = str(self._broker.port)

    def close(self) -> None:
        self._broker.stop()

    def prepare(self, verb: str) -> None:
        """A prompt file appears whole, by a rename."""
        if verb == "inbox once":
            name = f"{len(self._dropped)}.prompt.md"
            (self._inbox.parent / name).write_text("true\n", encoding="utf-8")
            (self._inbox.parent / name).rename(self._inbox / name)
            self._dropped.append(f"acme/shop/main/{name}")

    def judge(self, verb: str, code: int | None) -> None:
        """A copy exists only when it is complete; no process can open an incomplete one."""
        if verb != "migrate":
            return
        try:
            copy = contents(opened(self.names["moved"]))
        except (StoreMissing, StoreUnavailable):
            assert code != 0, "a copy was acknowledged, but is missing"
            return
        assert copy == self._contents, "the copy differs"
        shutil.rmtree(self._target)

    def finish(self, store: Store, records: dict[str, dict[str, Any]]) -> None:
        """`records` results from the journal after all work is done."""
        archived = {kept.job.job_id: kept.job.to_json() for kept in store.archive_contents()}
        inboxes = [job["inbox"] for job in (records | archived).values() if job.get("inbox")]
        files = sorted(str(inbox["file"]) for inbox in inboxes)
        assert files == sorted(self._dropped), f"dropped {self._dropped}, became jobs {files}"
        told = {(job_id, event) for job_id in records for event in _numbers(store, job_id)}
        self._check_heard(told)

    def _check_heard(self, told: set[tuple[str, int]]) -> None:
        heard: set[tuple[str, int]] = set()
        ends = time.monotonic() + PATIENCE
        while not told <= heard:
            assert time.monotonic() < ends, f"the broker never got {sorted(told - heard)[:5]}"
            _retained, _topic, payload = self._reader.take(1)[0].split(" ", 2)
            if payload:  # a message without one clears the events of a pruned job
                event = json.loads(payload)
                heard.add((event["job_id"], event["seq"]))


def _numbers(store: Store, job_id: str) -> list[int]:
    return [event["seq"] for event in store.events(job_id) if "marker" not in event]
