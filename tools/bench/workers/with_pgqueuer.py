"""PgQueuer: Queries.dequeue of one job and Queries.log_jobs of one, as its own worker calls them, over asyncpg."""

from __future__ import annotations

import sys
import uuid
from datetime import timedelta

import asyncpg  # type: ignore[import-not-found]
import uvloop  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.ports.repository import EntrypointExecutionParameter  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

QUEUE = "bench"
BATCH = 1000


async def fill(url: str, count: int, body: str) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
    await queries.install()
    for _ in range(count // BATCH):
        await queries.enqueue([QUEUE] * BATCH, [body.encode()] * BATCH, [0] * BATCH)


async def work(url: str) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
    manager, entrypoints = uuid.uuid4(), {QUEUE: EntrypointExecutionParameter(concurrency_limit=0)}
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            (job,) = await queries.dequeue(1, entrypoints, manager, None, timedelta(seconds=30))
            await queries.log_jobs([(job, "successful", None)])
        print("done", flush=True)


if __name__ == "__main__":
    uvloop.run(fill(sys.argv[1], int(sys.argv[2]), sys.argv[3]) if sys.argv[2:] else work(sys.argv[1]))
