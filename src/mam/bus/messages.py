"""Journal entries as MQTT messages: the payload, the topic and the retain flag."""

from __future__ import annotations

from mam.errors import MamError
from mam.events.subscriber import TERMINAL
from mam.events.topic import default_prefix, events_topic
from mam.events.wire import to_wire
from mam.stores.port import Entry
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.bus.settings import Broker
    from mam.jobs.record import Job
    from mam.stores.port import Store

_REMEMBERED = 10_000


class Message(Frozen):
    topic: str
    payload: bytes
    retain: bool = False
    """Terminal events are retained, so that a late subscriber learns how the job ended."""


class Destination(Frozen):
    """The topic and the signing token of one job's events."""

    topic: str
    token: str | None
    is_for_broker: bool
    """Whether the job's events go to this broker."""


class MessageBuilder:
    """Builds the messages of entries for one broker."""

    def __init__(self, store: Store, broker: Broker, report: Callable[[str], None]) -> None:
        self._store = store
        self._broker = broker
        self._report = report
        self._destinations: dict[str, Destination] = {}

    def messages(self, entry: Entry) -> Iterator[Message]:
        payloads = [line["payload"] for line in entry.lines if line["event"] == "published"]
        gone = entry.fields is None
        if not payloads and not gone:
            return
        destination = self._destination(entry)
        if not destination.is_for_broker:
            return
        hidden = [secret for secret in (destination.token, self._broker.password) if secret]
        for payload in payloads:
            yield Message(
                topic=destination.topic,
                payload=to_wire(payload, destination.token, hidden),
                retain=payload["event"] in TERMINAL,
            )
        if gone:
            # An empty retained message clears the retained one.
            yield Message(topic=destination.topic, payload=b"", retain=True)

    def newest(self, job: Job) -> Iterator[Message]:
        """The last event of a job: a subscriber reads the others back."""
        payloads = [event for event in self._store.events(job.job_id) if "marker" not in event]
        lines = tuple({"event": "published", "payload": payload} for payload in payloads[-1:])
        return self.messages(Entry(offset="", number=0, job_id=job.job_id, fields={}, lines=lines))

    def _destination(self, entry: Entry) -> Destination:
        found = self._destinations.get(entry.job_id)
        if found is None:
            found = self._destinations[entry.job_id] = self._load_destination(entry)
            if len(self._destinations) > _REMEMBERED:
                del self._destinations[next(iter(self._destinations))]
        return found

    def _load_destination(self, entry: Entry) -> Destination:
        job = self._job(entry.job_id)
        secrets = self._store.secrets(entry.job_id)
        prefix = default_prefix(entry.job_id) if job is None else job.topic_prefix
        topic = events_topic(prefix)
        if topic is None:
            self._report(f"the events of {entry.job_id} are not sent: its topic_prefix is not a valid topic")
        return Destination(
            topic=topic or "",
            token=secrets.get("auth_token"),
            is_for_broker=topic is not None and self._is_for_broker(job, secrets),
        )

    def _job(self, job_id: str) -> Job | None:
        try:
            return self._store.get(job_id)
        except MamError as error:
            if error.exit_code == 9:
                raise
            kept = self._store.archived(job_id)
            return None if kept is None else kept.job  # removed or broken since; its events can still be sent

    def _is_for_broker(self, job: Job | None, secrets: dict[str, str]) -> bool:
        if self._broker.for_all_jobs:
            return True
        from mam.bus.settings import record_broker

        own = None if job is None else record_broker(job, secrets)
        return own is not None and own.address == self._broker.address
