"""Explain why no job of a label can be claimed although jobs are pending."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.registry import Registry


def claim_hint(registry: Registry, *labels: str) -> str:
    """The end of the sentence "No pending job for LABEL"; empty if no job is pending."""
    return next(filter(None, (_of_label(registry, label) for label in labels)), "")


def _of_label(registry: Registry, label: str) -> str:
    now = registry.store.clock.now()
    held = [pause for pause in registry.store.pauses() if pause.label in (None, label) and pause.is_active(now)]
    if held:
        return f" ({held[0].scope} is paused; `mam pause --list` shows it)"
    count = registry.pending_count(label)
    if not count:
        return ""
    waits = "1 waits" if count == 1 else f"{count:,} wait"
    return f" that may be claimed now ({waits} for an exclusive key in use; `mam explain JOB` names the job)"
