"""The clocks of a job in a live session stand still while a person is asked."""

from __future__ import annotations

import time

import pytest

from tests.live.harness import LiveHarness
from tests.waiting import await_that

pytestmark = pytest.mark.external

TIMEOUT = 15


def test_the_timeout_counts_only_the_time_without_a_question(harness: LiveHarness) -> None:
    harness.agent()
    harness.work()
    job = harness.register(
        'agent: run mam ask "Go on?" --job {job} --attempt 1\nagent: await never', "--timeout", str(TIMEOUT),
        "--idle-timeout", str(TIMEOUT), "--on-idle", "stop",
    )  # fmt: skip
    await_that(lambda: harness.mam("questions").out)
    asked = time.monotonic()
    await_that(lambda: time.monotonic() > asked + TIMEOUT)
    assert harness.job(job)["status"] == "running", "neither the timeout nor the idle timeout counts"
    assert "asks" in harness.mam("show", job).out
    assert harness.mam("answer", job, "yes").code == 0
    ended = harness.await_status(job, "error")
    assert "timed out" in ended["reason"] or "silent" in ended["reason"], ended["reason"]
