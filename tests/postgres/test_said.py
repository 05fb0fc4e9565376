"""What verbs say of a server that is away, or that is not as they know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from tests.cli.command import Mam

AWAY = "postgresql://mam@127.0.0.1:1/away"


def test_a_log_that_may_lack_lines_reports_it(mam: Mam, url: str) -> None:
    job = mam("register", "do it", "--agent", "shell", "--store", url).line

    known, away = mam("logs", job, "--store", url), mam("logs", job, "--store", AWAY)

    assert (known.code, known.stderr) == (0, "")
    assert (away.code, away.out) == (0, known.out)
    assert away.stderr.startswith(f"mam: the latest lines may be missing: {AWAY}: ")
    assert len(away.stderr.splitlines()) == 1


def test_a_log_whose_store_is_gone_lacks_nothing(mam: Mam, url: str, database: str) -> None:
    from tests.postgres.server import empty

    job = mam("register", "do it", "--agent", "shell", "--store", url).line
    empty(database)
    shown = mam("logs", job, "--store", url)
    assert (shown.code, shown.stderr) == (0, "")
    assert "registered" in shown.out


def test_pick_names_the_exclusive_key_that_blocks_pending_jobs(mam: Mam, url: str) -> None:
    mam.env["MAM_STORE"] = url
    holder = mam.register("first", "--exclusive", "key", "-s", "other")
    assert mam("pick", "-s", "other").line == holder
    mam("pick", "-s", "shell").failed(3, "No pending job for shell.")
    mam.register("second", "--exclusive", "key")
    mam("pick", "-s", "shell").failed(3, "1 waits for an exclusive key")


def test_a_directory_of_a_newer_mam_is_not_reported_as_empty(mam: Mam, url: str) -> None:
    assert mam("agents", "list", "--store", url).code == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE mam.store SET version = 999")
    mam("agents", "list", "--store", url).failed(9, "999", "newer mam")
    mam("agents", "show", "anna", "--store", url).failed(9, "newer mam")
