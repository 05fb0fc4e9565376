"""A publisher as a process: `python -m tests.bus.publishing STORE JOB COUNT [PAUSE]`."""

from __future__ import annotations

import sys
import time

from mam.config.settings import Config
from mam.location.stores import locate, open_store
from mam.registry import Registry


def main() -> None:
    address, job_id, count, *pause = sys.argv[1:]
    config = Config(lock_wait_seconds=120.0)
    registry = Registry(open_store(locate(address, None, config), config))
    for number in range(int(count)):
        registry.publish(job_id, event="progress", detail=f"step {number}")
        if pause:
            time.sleep(float(pause[0]))  # so that there still are events to come when the test kills something
    registry.complete(job_id)


if __name__ == "__main__":
    main()
