"""A directory that is shared with Houmao: its records keep the form that its strict model requires."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from mam.agents.acts import publish, stop
from mam.agents.files_directory import FilesDirectory
from mam.agents.names import default_agent_id
from mam.agents.record import MamGroup
from mam.agents.record_parser import record_from
from tests.agents.records import a_record, version_2, version_3
from tests.cli.command import Mam

SCHEMA = json.loads((Path(__file__).parent / "houmao_record.schema.json").read_text(encoding="utf-8"))
HOUMAOS = hashlib.md5(b"HOUMAO-gpu", usedforsecurity=False).hexdigest()
FRESH = {"published_at": "2026-01-01T00:00:00+00:00", "lease_expires_at": "2126-01-01T00:00:00+00:00"}
GATEWAY = {"host": "127.0.0.1", "port": 9900, "state_path": "/somewhere/g.json", "protocol_version": "v1"}


def check_strictly(record: Any) -> None:
    jsonschema.validate(record, SCHEMA)


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    here = tmp_path / "here"
    here.mkdir()
    command = Mam(here, tmp_path)
    command.env["HOUMAO_GLOBAL_REGISTRY_DIR"] = str(tmp_path / "registry")
    return command


def _plant(mam: Mam, record: dict[str, Any], agent_id: str = HOUMAOS) -> Path:
    entry = mam.home / "registry/live_agents" / agent_id
    entry.mkdir(parents=True, mode=0o700)
    for level in (entry, *list(entry.parents)[:2]):
        level.chmod(0o700)
    file = entry / "record.json"
    file.write_text(json.dumps(record))
    file.chmod(0o600)
    return file


def _houmaos(**changes: Any) -> dict[str, Any]:
    return version_3("HOUMAO-gpu") | {"agent_id": HOUMAOS, "liveness": FRESH, "gateway": GATEWAY} | changes


def test_the_model_is_strict() -> None:
    check_strictly(_houmaos())
    wrongs: tuple[dict[str, Any], ...] = (
        {"mam": {}},
        {"agent_name": "a b"},
        {"liveness": None},
        {"gateway": {"host": "127.0.0.1"}},
    )
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            check_strictly(_houmaos() | wrong)


def test_refresh_keeps_the_form_and_the_groups(mam: Mam) -> None:
    file = _plant(mam, _houmaos())

    ran = mam("agents", "refresh", "gpu", "--generation", "generation-1")

    assert ran.code == 0, ran.stderr
    record = json.loads(file.read_text())
    check_strictly(record)
    assert (record["gateway"], record["agent_id"]) == (GATEWAY, HOUMAOS)
    facts = json.loads((file.parent / "mam.json").read_text())
    assert facts["generations"]["generation-1"]["lease_boot"]


@pytest.mark.parametrize("value", [version_2(), version_3(), _houmaos()])
def test_every_write_has_the_form(tmp_path: Path, value: dict[str, Any]) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"))
    record = record_from(value)
    group = MamGroup(host="here", socket="/s", pane="%1", stores=("/jobs",))
    file = tmp_path / "agents/live_agents" / record.agent_id / "record.json"

    directory.change(record.agent_id, publish(record.replace(mam=group), 60))
    check_strictly(json.loads(file.read_text()))
    directory.change(record.agent_id, stop(record.generation_id, "done"))

    check_strictly(json.loads(file.read_text()))
    kept = directory.read(record.agent_id).record
    assert kept is not None
    assert (kept.mam.host, kept.mam.pane, kept.mam.stores) == ("here", "%1", ("/jobs",))


def test_a_generation_of_houmao_replaces_those_that_mam_knows(tmp_path: Path) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"))
    record = a_record().replace(mam=MamGroup(pane="%1", stores=("/jobs",)))
    directory.change(record.agent_id, publish(record, 60))
    file = tmp_path / "agents/live_agents" / record.agent_id / "record.json"
    theirs = json.loads(file.read_text()) | {"generation_id": "theirs"}
    file.write_text(json.dumps(theirs))

    seen = directory.read(record.agent_id).record

    assert seen is not None
    assert (seen.generation_id, seen.mam.pane) == ("theirs", "")
    assert (seen.mam.superseded, seen.mam.stores) == (("generation-1",), ("/jobs",))


def test_killed_between_the_two_files_the_earlier_generation_keeps_its_facts(tmp_path: Path) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"))
    first = a_record().replace(mam=MamGroup(pane="%1"))
    directory.change(first.agent_id, publish(first, 60))
    file = tmp_path / "agents/live_agents" / first.agent_id / "record.json"
    before = file.read_bytes()
    directory.change(first.agent_id, stop("generation-1", "done"))
    second = a_record(generation="generation-2").replace(mam=MamGroup(pane="%2"))
    directory.change(first.agent_id, publish(second, 60))

    file.write_bytes(before)  # mam.json was written, record.json was not

    seen = directory.read(first.agent_id).record
    assert seen is not None
    assert (seen.generation_id, seen.mam.pane) == ("generation-1", "%1")


def test_facts_in_a_record_of_an_older_mam_move_out(tmp_path: Path) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"))
    entry = tmp_path / "agents/live_agents" / default_agent_id("gpu")
    entry.mkdir(parents=True, mode=0o700)
    for level in (entry, *list(entry.parents)[:2]):
        level.chmod(0o700)
    (entry / "record.json").write_text(json.dumps(version_3(mam={"pane": "%1"}, liveness=FRESH)))
    (entry / "record.json").chmod(0o600)

    stopped = directory.change(default_agent_id("gpu"), stop("generation-1", "done"))

    assert stopped is not None
    assert stopped.mam.pane == "%1"
    check_strictly(json.loads((entry / "record.json").read_text()))
    assert "%1" in (entry / "mam.json").read_text()


@pytest.mark.parametrize(
    "content", ["", "[]", "[" * 60_000, '{"generations": [1]}', '{"generations": {"x": {"y": 1}}}']
)
def test_a_file_that_is_not_mams_is_ignored(mam: Mam, content: str) -> None:
    file = _plant(mam, _houmaos())
    (file.parent / "mam.json").write_text(content)

    assert mam("agents", "resolve", "gpu").line == HOUMAOS


def test_a_name_that_houmao_has_is_rejected(mam: Mam) -> None:
    file = _plant(mam, _houmaos())
    before = file.read_bytes()

    mam("agents", "publish", "gpu", "--session", "s", "--manifest", "/m.json").failed(4, "generation-1")

    assert file.read_bytes() == before
    assert [path.name for path in (mam.home / "registry/live_agents").iterdir()] == [HOUMAOS]


def test_an_id_that_houmao_chose_counts_too(mam: Mam) -> None:
    _plant(mam, _houmaos(agent_id="chosen"), "chosen")

    mam("agents", "publish", "gpu", "--session", "s", "--manifest", "/m.json").failed(4, "generation-1")


def test_with_its_prefix_mam_takes_its_id(mam: Mam) -> None:
    mam.env["MAM_AGENT_PREFIX"] = "HOUMAO"

    ran = mam("agents", "publish", "gpu", "--session", "s", "--manifest", "/m.json")

    assert ran.line.split("\t")[0] == HOUMAOS


def test_an_invalid_record_is_reported_by_name(mam: Mam) -> None:
    _plant(mam, _houmaos(surprise="x"))

    ran = mam("agents", "resolve", "gpu", "--json")

    assert (ran.code, ran.json["answer"]) == (1, "invalid")
    assert "surprise" in ran.json["reason"]


def test_the_options_of_its_cleanup_are_accepted(mam: Mam) -> None:
    _plant(mam, _houmaos())

    ran = mam("admin", "cleanup", "registry", "--grace-seconds", "0", "--dry-run", "--no-tmux-check", "--print-json")

    assert ran.code == 0, ran.stderr
    assert [item["agent_id"] for item in ran.json["kept"]] == [HOUMAOS]


def test_a_relative_directory_is_rejected(mam: Mam) -> None:
    mam.env["HOUMAO_GLOBAL_REGISTRY_DIR"] = "here"
    mam("agents", "list").failed(2, "HOUMAO_GLOBAL_REGISTRY_DIR")
