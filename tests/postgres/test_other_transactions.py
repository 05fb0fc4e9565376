"""An open transaction of another client delays neither `mam wait` nor a cancel.

The processes run without their fallbacks, so only a notification can wake them. Nothing but the signal ends the tests.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore
from tests.waiting import await_that

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.command import Mam
    from tests.postgres.server import PrivateServer

BY_NEWS_ALONE = """
import sys
from mam import __main__, registry
registry.LONGEST_SLEEP_SECONDS = 1e4
from mam.work import supervision
supervision.renewal_seconds = lambda _lease: 1e4
sys.exit(__main__.main())
"""
"""Runs the command without its fallbacks: it neither looks again after a while nor renews a lease, which shows a cancel
too."""

OTHER = "other"


@pytest.fixture(params=["postgres", OTHER])
def other_client(request: pytest.FixtureRequest, url: str, server: PrivateServer) -> Iterator[psycopg.Connection[Any]]:
    """In a transaction that has written and listens, in the store's database or in another one of the server."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS other")
        admin.execute("CREATE DATABASE other")
        with psycopg.connect(server.url(request.param)) as other:
            other.execute("LISTEN mam_news")
            other.commit()
            other.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            other.execute("CREATE TABLE unfinished (number integer)")
            other.execute("NOTIFY mam_news, 'unfinished'")
            yield other
            assert other.info.transaction_status == TransactionStatus.INTRANS, "it ended before the others"
            other.rollback()
        admin.execute("DROP DATABASE other")


@pytest.fixture
def by_news_alone(mam: Mam, url: str) -> Mam:
    mam.env["MAM_STORE"] = url
    return mam


def start(mam: Mam, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", BY_NEWS_ALONE, *words]
    return subprocess.Popen(command, env=mam.env, cwd=mam.here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.usefixtures("other_client")
def test_wait_returns_during_the_transaction_of_another(
    by_news_alone: Mam, other: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    registry = Registry(other)
    job = registry.register(prompt="p", agent="codex", label="one").job
    waiting = start(by_news_alone, "wait", job.job_id)
    await_that(lambda: waits(admin))
    claimed = registry.pick("one", owner="me")
    assert claimed is not None
    registry.complete(job.job_id, attempt=claimed.attempt)
    assert waiting.wait(60) == 0


@pytest.mark.usefixtures("other_client")
def test_a_cancel_ends_an_agent(by_news_alone: Mam, other: PostgresStore, tmp_path: Path) -> None:
    registry = Registry(other)
    job = registry.register(prompt="echo started; exec sleep 1000", agent="shell", workdir=str(tmp_path)).job
    worker = start(by_news_alone, "worker", "-s", "shell", "--drain")
    await_that(lambda: registry.get(job.job_id).status == "running")
    registry.cancel(job.job_id)
    assert worker.wait(60) == 0
    assert registry.get(job.job_id).status == "cancelled"


def waits(admin: psycopg.Connection[Any]) -> bool:
    """Whether a process listens to the store's news (mam.tell)."""
    locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (7168365, 2)"
    return bool(admin.execute(locks.encode()).fetchall())
