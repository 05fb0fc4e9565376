"""The MQTT topic of a job's events."""

from __future__ import annotations

_TOPIC_BYTES = 65_535
_NOT_IN_A_TOPIC = frozenset("+#\0")


def default_prefix(job_id: str) -> str:
    return f"python/mqtt/jobs/{job_id}"


def events_topic(prefix: str) -> str | None:
    """The topic of a job's events; None for a prefix that could match other topics."""
    topic = f"{prefix}/events"
    if _NOT_IN_A_TOPIC & set(prefix) or prefix.startswith("$") or not prefix:
        return None
    try:
        return topic if len(topic.encode()) <= _TOPIC_BYTES else None
    except UnicodeEncodeError:
        return None
