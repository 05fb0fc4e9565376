"""The trees of older programs, as they are in golden/: everything they knew is in the registry they become."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from mam.agents.files_directory import FilesDirectory
from mam.errors import BadInput, Refused
from mam.jobs.status import Status
from mam.maintenance.old_agents import copy_agents
from mam.registry import Registry
from mam.stores.port import Query
from tests.maintenance.registries import migrate, opened

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A private copy that the user of the tests owns, like a real one."""
    place = tmp_path / "old"
    shutil.copytree(GOLDEN / request.param, place)
    for path in (place, *place.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return place


def fingerprint(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        for path in sorted(place.rglob("*"))
    }


@pytest.mark.parametrize("tree", ["hermes_jobs"], indirect=True)
@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_records_of_the_scripts_are_copied(tree: Path, tmp_path: Path, kind: str) -> None:
    before = fingerprint(tree)
    target = str(tmp_path / "to") if kind == "files" else f"sqlite://{tmp_path}/to.db"
    moved = migrate(str(tree), target)
    assert (moved.jobs, moved.left_behind) == (3, [])
    assert fingerprint(tree) == before, "not even a lock file was left there"
    store = opened(target)
    assert [job.job_id for job in store.select(Query())] == ["fff00000", "abc12345", "def67890"], "as they were made"
    for job in store.select(Query()):
        old = json.loads((tree / f"{job.job_id}.json").read_text(encoding="utf-8"))
        new = job.to_json()
        kept = {name: value for name, value in old.items() if name not in ("broker", "auth_token")}
        assert {name: new.get(name) for name in kept} == kept, "no field is lost"
    assert [event["event"] for event in store.events("abc12345")] == ["started", "completed"]
    assert store.events("fff00000") == [{"marker": "imported", "seq": 1, "upto": 3}]
    assert store.secrets("def67890")["auth_token"] == "a-secret-of-the-old-days"
    assert "secret-of-the-old-days" not in json.dumps([job.to_json() for job in store.select(Query())])


@pytest.mark.parametrize("tree", ["mam_jobs"], indirect=True)
def test_a_running_record_has_a_lease_where_it_goes(tree: Path, tmp_path: Path) -> None:
    migrate(str(tree), str(tmp_path / "to"))
    job = opened(str(tmp_path / "to")).get("aaaa1111")
    assert job.status is Status.RUNNING
    assert job.lease is not None


@pytest.mark.parametrize("tree", ["queue_jobs"], indirect=True)
def test_a_queue_of_prompt_files_is_copied(tree: Path, tmp_path: Path) -> None:
    before = fingerprint(tree)
    moved = migrate(str(tree), str(tmp_path / "to"))
    assert (moved.jobs, moved.left_behind) == (5, [])
    assert fingerprint(tree) == before
    jobs = list(opened(str(tmp_path / "to")).select(Query()))[::-1]
    assert [job.status.value for job in jobs] == ["completed", "error", "pending", "pending", "pending"]
    assert jobs[1].reason == "preflight"
    for job in jobs:
        assert job.unknown["queue"] == json.loads((tree / job.job_id / "job.json").read_text()), "no field is lost"
        assert job.agent_session == "acme/shop"


@pytest.mark.parametrize("tree", ["queue_jobs"], indirect=True)
def test_a_broken_entry_of_a_queue_stays_behind(tree: Path, tmp_path: Path) -> None:
    broken = f"{2:032x}"
    (tree / broken / "state").write_text("lost in space\n")
    moved = migrate(str(tree), str(tmp_path / "to"))
    assert moved.jobs == 4
    assert [(found.file, "state" in found.problem) for found in moved.left_behind] == [(f"{broken}/job.json", True)]


@pytest.mark.parametrize("tree", ["live_agents_v2", "live_agents_v3"], indirect=True)
def test_sessions_of_houmao_are_copied(tree: Path, tmp_path: Path) -> None:
    before = fingerprint(tree)
    moved = copy_agents(str(tree / "live_agents"), str(tmp_path / "to"))
    assert (moved.jobs, moved.left_behind) == (2, [])
    assert fingerprint(tree) == before
    assert [path.name for path in tmp_path.iterdir() if path != tree] == ["to"], "what it was filled in is gone"
    old = {lookup.agent_id: lookup.record for lookup in FilesDirectory(str(tree)).read_all()}
    new = {lookup.agent_id: lookup.record for lookup in FilesDirectory(str(tmp_path / "to")).read_all()}
    assert new == old
    assert len(new) == 2
    with pytest.raises(Refused, match="not empty"):
        copy_agents(str(tree), str(tmp_path / "to"))


@pytest.mark.parametrize("tree", ["hermes_jobs"], indirect=True)
def test_one_that_mam_took_over_in_place_moves_as_well(tree: Path, tmp_path: Path) -> None:
    registry = Registry(opened(str(tree)))
    registry.cancel("def67890")
    migrate(str(tree), str(tmp_path / "to"))
    assert opened(str(tmp_path / "to")).get("def67890").status is Status.CANCELLED


def test_a_directory_without_jobs_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir(mode=0o700)
    with pytest.raises(BadInput, match="holds no jobs"):
        migrate(str(tmp_path / "nothing"), str(tmp_path / "to"))
