"""Procrastinate: JobManager.fetch_job and finish_job, as its own worker calls them, over its default connector."""

from __future__ import annotations

import asyncio
import logging
import sys

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]
from procrastinate.jobs import Status  # type: ignore[import-not-found]

QUEUE = "bench"
BATCH = 1000


async def fill(url: str, count: int, body: str) -> None:
    app = App(connector=PsycopgConnector(conninfo=url))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        task = app.configure_task("bench", queue=QUEUE, allow_unknown=True)
        for _ in range(count // BATCH):
            await task.batch_defer_async(*({"body": body} for _ in range(BATCH)))


async def work(url: str) -> None:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=1))
    async with app.open_async():
        manager = app.job_manager
        worker = await manager.register_worker()
        print("ready", flush=True)
        for line in sys.stdin:
            for _ in range(int(line)):
                job = await manager.fetch_job(queues=[QUEUE], worker_id=worker)
                assert job is not None, "the bench has run out of jobs"
                await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            print("done", flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # it would rather not see its App in a main module
    asyncio.run(fill(sys.argv[1], int(sys.argv[2]), sys.argv[3]) if sys.argv[2:] else work(sys.argv[1]))
