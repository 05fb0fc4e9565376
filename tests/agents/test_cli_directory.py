"""`mam agents publish|refresh|resolve|list|show|remove|cleanup`, as a process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mam.agents.names import default_agent_id
from tests.agents.records import as_bytes, version_2, version_3
from tests.cli.command import Mam

GPU = default_agent_id("gpu")
PUBLISH = ("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m")


@pytest.fixture(autouse=True)
def agents_dir(mam: Mam) -> Path:
    mam.env["MAM_AGENTS_DIR"] = str(mam.home / "agents")
    return mam.home / "agents"


def test_a_session_is_published_refreshed_and_removed(mam: Mam) -> None:
    assert mam(*PUBLISH, "--generation", "one").line == f"{GPU}\tone"
    assert mam("agents", "resolve", "HOUMAO-gpu").line == GPU
    assert mam("agents", "resolve", "--session", "gpu").line == GPU
    mam(*PUBLISH, "--generation", "two").failed(4, "Ownership conflict", "one", "two")
    mam("agents", "refresh", "gpu", "--generation", "two").failed(4, "has been replaced")
    assert mam("agents", "refresh", "gpu", "--generation", "one", "--lease", "1h").code == 0
    shown = mam("agents", "show", "gpu")
    assert shown.json["generation_id"] == "one"
    assert mam("agents", "list").line.split("\t")[:5] == [GPU, "MAM-gpu", "live", "gpu", "shell"]
    mam("agents", "remove", "gpu", "--generation", "two").failed(4)
    assert mam("agents", "remove", "gpu", MAM_GENERATION="one").line == GPU
    mam("agents", "resolve", "gpu").failed(1, "No live record for gpu", "there is none")


def test_the_agent_itself_needs_no_names(mam: Mam) -> None:
    agent_id, generation = mam(*PUBLISH).line.split("\t")
    mam.env.update(MAM_AGENT_ID=agent_id, MAM_GENERATION=generation)
    assert mam("agents", "refresh").code == 0
    assert mam("agents", "resolve").line == agent_id
    assert mam("agents", "remove").line == agent_id


def test_json_answers_name_the_kind_of_answer(mam: Mam) -> None:
    none = mam("agents", "resolve", "gpu", "--json")
    assert (none.code, none.json["answer"], none.stderr) == (1, "missing", "")
    mam(*PUBLISH, "--id", "one")
    mam(*PUBLISH, "--id", "two")
    several = mam("agents", "resolve", "gpu", "--json")
    assert (several.code, several.json["candidates"]) == (6, ["one", "two"])
    mam("agents", "resolve", "gpu").failed(6, "one, two")
    assert mam("agents", "resolve", "--id", "two").line == "two"


def test_a_whole_record_of_houmao_can_be_published(mam: Mam, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(as_bytes(version_2()))
    mam("agents", "publish", "--record", str(file))
    shown = mam("agents", "show", "gpu").json
    assert (shown["schema_version"], shown["agent_name"]) == (3, "MAM-gpu")
    assert shown["mailbox"] == version_2()["mailbox"]

    file.write_bytes(as_bytes({**version_3(), "liveness": {"published_at": "2026-01-01T00:00:00"}}))
    mam("agents", "publish", "--record", str(file)).failed(1, "timezone-aware")
    file.write_bytes(as_bytes(version_3(generation="generation-1")))
    mam("agents", "publish", "--record", str(file)).failed(1, "in the past")
    piped = mam("agents", "publish", "--record", "-", "--lease", "1h", stdin=as_bytes(version_3("other")))
    assert piped.code == 0
    mam("agents", "publish", "--record", "/nowhere").failed(2, "No such file")


def test_the_prefix_is_a_setting(mam: Mam) -> None:
    mam(*PUBLISH, MAM_AGENT_PREFIX="HOUMAO")
    assert mam("agents", "show", "gpu").json["agent_name"] == "HOUMAO-gpu"
    mam(*PUBLISH, MAM_AGENT_PREFIX="TEAM").failed(2, "MAM_AGENT_PREFIX")


@pytest.mark.parametrize("name", ["..", "a/b", "a b", "a.b", "MAM", "mam-x", "", "x" * 200])
def test_invalid_names_are_rejected_by_every_verb(mam: Mam, name: str) -> None:
    mam("agents", "publish", name, "--session", "s", "--manifest", "/m").failed(2, "cannot name an agent")
    mam("agents", "resolve", "--name", name).failed(1, "is not a name")
    mam("agents", "resolve", "--id", name).failed(1, "No live record")
    removed = mam("agents", "remove", "--id", name, "--generation", "g")
    assert removed.code == (1 if name in ("MAM", "mam-x") else 2), removed.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("agents",),
        ("agents", "publsh"),
        ("agents", "publish"),
        ("agents", "publish", "gpu"),
        ("agents", "publish", "gpu", "--session", " ", "--manifest", "/m", "--lease", "x"),
        ("agents", "resolve"),
        ("agents", "resolve", "gpu", "--id", "x"),
        ("agents", "refresh", "gpu"),
        ("agents", "remove", "gpu", "--generation", "a/b"),
        ("agents", "cleanup", "--grace-seconds", "-1"),
        ("agents", "list", "--nonsense"),
        ("admin",),
        ("admin", "cleanup"),
        ("admin", "cleanup-registry"),
    ],
)
def test_mistakes_are_one_line_and_2(mam: Mam, words: tuple[str, ...]) -> None:
    mam(*words).failed(2)


def test_a_relative_directory_is_refused(mam: Mam) -> None:
    mam("agents", "list", MAM_AGENTS_DIR="relative/path").failed(2, "MAM_AGENTS_DIR must be an absolute path")


def test_without_a_setting_it_is_the_users_own(mam: Mam) -> None:
    del mam.env["MAM_AGENTS_DIR"]
    mam(*PUBLISH)
    assert (mam.home / ".local/state/mam/agents/live_agents" / GPU / "record.json").is_file()


def test_an_old_record_is_shown_and_marked_as_old(mam: Mam, agents_dir: Path) -> None:
    mam(*PUBLISH)
    file = agents_dir / "live_agents" / GPU / "record.json"
    record = json.loads(file.read_bytes())
    record["liveness"].update(published_at="2026-01-01T00:00:00Z", lease_expires_at="2026-01-02T00:00:00+00:00")
    file.write_text(json.dumps(record))

    shown = mam("agents", "show", "gpu")
    assert (shown.code, shown.json["agent_id"]) == (1, GPU)
    assert "its lease ended at 2026-01-02" in shown.stderr
    mam("agents", "resolve", "gpu").failed(1, "its lease ended at 2026-01-02")
    assert mam("agents", "list").line.split("\t")[2] == "expired"
    assert mam("agents", "list", "--live").out == ""
    assert mam(*PUBLISH).code == 0


def test_cleanup_reports_what_it_did_with_each_record(mam: Mam, agents_dir: Path) -> None:
    mam(*PUBLISH)
    (agents_dir / "live_agents" / "bad").mkdir(mode=0o700)

    planned = mam("admin", "cleanup", "registry", "--dry-run", "--json").json
    assert planned["dry_run"]
    assert [item["agent_id"] for item in planned["planned"]] == ["bad"]
    lines = [line.split("\t") for line in mam("agents", "cleanup").out.splitlines()]
    assert lines == [["applied", "bad", "there is no record.json"], ["kept", GPU, lines[1][2]]]
    assert mam("--json", "agents", "cleanup").json["applied"] == []


def test_help_is_there_for_each(mam: Mam) -> None:
    from mam.cli.verbs.agents import SUBVERBS

    overview = mam("agents", "--help").out
    for verb in SUBVERBS:
        assert f"\n  {verb} " in overview
        shown = mam("agents", verb, "--help")
        assert shown.code == 0
        assert shown.out.startswith(f"usage: mam agents {verb} ")
