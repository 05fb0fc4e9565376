"""A session claims under its generation. The next generation gets its jobs at once, and writes of the old one are
rejected."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from mam.machine.processes import identify, is_alive, send_signal
from mam.stores.postgres.store import create_postgres_store
from tests.agents.sessions import Sessions
from tests.cli.command import Mam
from tests.waiting import await_that

KINDS = ["files", "sqlite", "postgres"]
LABEL = "work"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, mam: Mam) -> str:
    """The store of the jobs; on a server it also holds the session directory."""
    kind: str = request.param
    if kind == "postgres":
        url: str = request.getfixturevalue("database")
        create_postgres_store(url)
        mam.env["MAM_STORE"] = url
    else:
        mam.env["MAM_STORE"] = f"sqlite://{mam.here}/jobs.db" if kind == "sqlite" else str(mam.here / "jobs")
        assert mam("init").code == 0
    return mam.env["MAM_STORE"]


def a_job(mam: Mam, *words: str) -> str:
    return mam("register", "do it", "--agent", "shell", "--agent-session", LABEL, *words).line


def published(mam: Mam, *words: str) -> dict[str, Any]:
    """A published session without tmux, as its environment."""
    ran = mam("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m.json", *words)
    assert ran.code == 0, ran.stderr
    agent, generation = ran.out.split()
    return {"MAM_AGENT_ID": agent, "MAM_GENERATION": generation}


def expire(mam: Mam, session: dict[str, Any]) -> None:
    """Let its lease expire and change nothing else."""
    mam("agents", "refresh", "--id", session["MAM_AGENT_ID"], "--lease", "1s", **session)
    await_that(lambda: mam("agents", "resolve", "gpu").code == 1)


def test_a_restarted_session_has_the_jobs_of_its_predecessor(sessions: Sessions, store: str) -> None:
    mam = sessions.mam
    job, told = a_job(mam), sessions.folder / "told"
    script = f'{sys.executable} -m mam pick -s {LABEL} --export >"$0.part" && mv "$0.part" "$0"; exec cat'
    agent, first = mam("agents", "start", "gpu", "--", "sh", "-c", script, str(told)).line.split("\t")
    await_that(told.exists)
    claim = mam("get", job).json["claim_id"]
    assert told.read_text(encoding="utf-8") == f"MAM_JOB_ID={job} MAM_ATTEMPT=1 MAM_CLAIM={claim}\n"
    assert mam("get", job).json["claimant"] == {"agent_id": agent, "generation_id": first}
    (status,) = mam("agents", "status", "--json").json
    assert [(held["job_id"], held["generation_id"]) for held in status["jobs"]] == [(job, first)]
    told.unlink()

    ran = mam("agents", "restart", "gpu")

    second = ran.out.split()[1]
    await_that(told.exists)
    held = mam("get", job).json
    assert told.read_text(encoding="utf-8") == f"MAM_JOB_ID={job} MAM_ATTEMPT=2 MAM_CLAIM={held['claim_id']}\n"
    assert (held["claimant"]["generation_id"], held["losses"], held["retries"]) == (second, 0, 0)
    old: dict[str, Any] = {"MAM_AGENT_ID": agent, "MAM_GENERATION": first}
    mam("pick", "-s", LABEL, **old).failed(4, first, second, "has been replaced")
    mam("complete", job, "--attempt", "1", **old).failed(4)
    assert mam("complete", job, "--attempt", "2").line == "completed"


def test_a_new_generation_announces_itself_before_its_first_claim(mam: Mam, store: str) -> None:
    first = published(mam)
    job = a_job(mam)
    assert mam("pick", "-s", LABEL, **first).line == job
    expire(mam, first)

    ran = mam("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m.json")

    assert ran.code == 0
    assert "1 job of the previous generation can be claimed again" in ran.stderr
    assert mam("status", job).line == "pending"
    mam("pick", "-s", LABEL, **first).failed(4, first["MAM_GENERATION"])
    assert mam("pick", "-s", LABEL).line == job, "any worker may claim it, in a session or not"


def test_the_store_refuses_it_even_where_the_directory_has_forgotten(mam: Mam, store: str) -> None:
    first = published(mam)
    job = a_job(mam)
    assert mam("pick", "-s", LABEL, **first).line == job
    expire(mam, first)
    second = published(mam)
    assert mam("agents", "remove", "gpu", **second).code == 0

    mam("pick", "-s", LABEL, **first)  # warns that there is no record, and the store rejects the claim
    refused = mam("pick", "-s", LABEL, **first)

    assert refused.code == 4
    assert "has been replaced" in refused.stderr
    assert mam("status", job).line == "pending"


@pytest.fixture
def elsewhere(mam: Mam, tmp_path: Path) -> Path:
    """A second store that the first generation has claimed from."""
    path = tmp_path / "other project" / "jobs"
    path.parent.mkdir()
    assert mam("init", "--store", str(path)).code == 0
    return path


def test_it_visits_every_store_and_names_those_it_could_not_reach(sessions: Sessions, elsewhere: Path) -> None:
    mam = sessions.mam
    first = published(mam)
    here = a_job(mam)
    there = a_job(mam, "--store", str(elsewhere))
    assert mam("pick", "-s", LABEL, **first).line == here
    assert mam("pick", "-s", LABEL, "--store", str(elsewhere), **first).line == there
    expire(mam, first)
    away = elsewhere.with_name("away")
    elsewhere.rename(away)

    ran = mam("agents", "start", "gpu", "--", "cat")

    assert ran.code == 0
    missed, told = sorted(ran.stderr.splitlines())
    assert told == f"mam: 1 job of the previous generation can be claimed again in {mam.here}/.mam/jobs"
    assert "does not know the new generation" in missed
    assert str(elsewhere) in missed
    assert mam("status", here).line == "pending"
    away.rename(elsewhere)
    assert mam("status", there, "--store", str(elsewhere)).line == "running"
    second: dict[str, Any] = {"MAM_AGENT_ID": first["MAM_AGENT_ID"], "MAM_GENERATION": ran.out.split()[1]}
    assert mam("pick", "-s", LABEL, "--store", str(elsewhere), **second).line == there


LATE = """
exec </dev/null >>"$0/$MAM_GENERATION.talk" 2>&1
trap "" HUP
{mam} pick -s work >"$0/$MAM_GENERATION.picked"
sleep 1000 & echo $! >"$0/$MAM_GENERATION.sleeper"; wait
{mam} complete --job {job} --attempt 1; echo $? >"$0/$MAM_GENERATION.complete"
{mam} pick -s work; echo $? >"$0/$MAM_GENERATION.pick"
"""


def test_a_predecessor_that_was_frozen_wakes_up_and_is_refused(sessions: Sessions) -> None:
    """A process of the old session outlives it, suspended meanwhile."""
    mam = sessions.mam
    job = a_job(mam)
    late = LATE.format(mam=f"{sys.executable} -m mam", job=job)
    first = sessions.start("gpu", "sh", "-c", f"({late}) & exec cat", str(sessions.folder))

    def said(what: str) -> str:
        file = sessions.folder / f"{first}.{what}"
        await_that(lambda: file.exists() and file.read_text(encoding="ascii").endswith("\n"))
        return file.read_text(encoding="ascii").strip()

    assert said("picked") == job
    sleeper = identify(int(said("sleeper")))
    assert sleeper is not None
    shell = identify(int(Path(f"/proc/{sleeper.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1]))
    assert shell is not None
    assert send_signal(shell, signal.SIGSTOP)

    second = mam("agents", "restart", "gpu").out.split()[1]
    await_that(lambda: (mam("get", job).json["claimant"] or {}).get("generation_id") == second)
    before = mam("get", job).json
    assert send_signal(sleeper, signal.SIGKILL)
    assert send_signal(shell, signal.SIGCONT)

    assert (said("complete"), said("pick")) == ("4", "4")
    assert mam("get", job).json == before
    await_that(lambda: not is_alive(shell))
    _end_sleepers(sessions)


def _end_sleepers(sessions: Sessions) -> None:
    """A process of the second generation outlives it too."""
    for file in sessions.folder.glob("*.sleeper"):
        left = identify(int(file.read_text(encoding="ascii")))
        if left is not None and "sleep" in Path(f"/proc/{left.pid}/cmdline").read_text(encoding="utf-8"):
            send_signal(left, signal.SIGKILL)


def test_jobs_of_a_session_that_is_over_or_of_another_life_are_a_drift(sessions: Sessions) -> None:
    mam = sessions.mam
    job, agent = a_job(mam), mam("agents", "start", "gpu", "--", "cat").line.split("\t")[0]
    generation = sessions.record("gpu")["generation_id"]
    assert mam("pick", "-s", LABEL, "--agent-id", agent, "--generation", generation).line == job
    assert sessions.status("gpu")["drift"] == []
    assert "gpu" in mam.on_terminal("agents", "list").out
    assert mam("agents", "stop", "gpu").code == 0
    drift = f"the record is stopped, but job {job[:8]} still runs for it"
    assert sessions.status("gpu")["drift"] == [drift]
    shown = mam.on_terminal("agents", "status").out
    assert "COMPANION" in shown
    assert drift in " ".join(shown.split())

    elsewhere = mam.home / "elsewhere"
    second = mam("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m", MAM_AGENTS_DIR=str(elsewhere))
    ran = mam("agents", "status", "gpu", "--json", MAM_AGENTS_DIR=str(elsewhere))
    assert second.code == 0
    assert f"job {job[:8]} is held by generation {generation}, not by the record's generation" in ran.json[0]["drift"]


def test_an_incomplete_session_is_rejected_and_an_agent_id_alone_names_none(mam: Mam) -> None:
    job = a_job(mam)
    for words in (("--agent-id", "gpu"), ("--generation", "g")):
        mam("pick", "-s", LABEL, *words).failed(2, "--agent-id and --generation")
    for bad in ("a/b", "..", "a b", "", "é"):
        mam("pick", "-s", LABEL, "--agent-id", "gpu", "--generation", bad).failed(2)
    assert mam("pick", "-s", LABEL, MAM_AGENT_ID="gpu").line == job
    assert mam("get", job).json["claimant"] is None


def test_a_session_without_a_record_can_claim_and_gets_a_warning(mam: Mam) -> None:
    mam.env["MAM_AGENTS_DIR"] = str(mam.home / "agents")
    job = a_job(mam)
    ran = mam("pick", "-s", LABEL, "--agent-id", "nobody", "--generation", "g-1", "--json")
    assert (ran.code, ran.json["job_id"]) == (0, job)
    assert ran.json["claimant"] == {"agent_id": "nobody", "generation_id": "g-1"}
    assert "has no record" in ran.stderr


def test_no_password_reaches_the_record(mam: Mam, database: str) -> None:
    create_postgres_store(database)
    mam.env["MAM_STORE"] = database.replace("//mam@", "//mam:canary@")
    first = published(mam)
    a_job(mam)
    assert mam("pick", "-s", LABEL, **first).code == 0
    record = mam("agents", "show", "gpu")
    assert record.json["mam"]["stores"]
    assert "canary" not in record.out
    expire(mam, first)
    again = mam("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m.json")
    assert "1 job" in again.stderr, "the store is the one of this command, whose password is known"
    assert "canary" not in again.stderr
