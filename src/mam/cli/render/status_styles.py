"""The icon and the colour of each status."""

from __future__ import annotations

from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING

STATUS_STYLES = {
    PENDING: ("○", "cyan"),
    WAITING: ("◷", "blue"),
    RUNNING: ("▶", "yellow"),
    COMPLETED: ("✔", "green"),
    ERROR: ("✖", "red"),
    CANCELLED: ("⊘", "dim"),
}
