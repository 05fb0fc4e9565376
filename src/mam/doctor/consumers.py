"""Check whether consumers of the journal that save their position in the store are silent or lost."""

from __future__ import annotations

from mam.doctor.finding import fine, wrong
from mam.stores.silence import lost_consumers, silent_consumers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    store = context.try_open()
    if store is None:
        return
    lost, days = lost_consumers(store), context.config.retention_days
    for name in lost:
        yield wrong(
            f"the consumer {name!a} was silent for so long that `mam prune` summarised entries that it has not read",
            "when it returns it is lost: a relay sends the last event of each job, other consumers begin anew",
            "start it again (`mam relay`), or ignore this if it is gone for good",
        )
    silent = [name for name in silent_consumers(store, days) if name not in lost]
    for name in silent:
        yield wrong(
            f"the consumer {name!a} has been silent for more than {days:g} days",
            "`mam prune` no longer waits for it",
            "start it again (`mam relay`), or ignore this if it is gone for good",
        )
    if not lost and not silent:
        yield fine("no consumer of the journal is silent")
