"""`mam adopt`: what other programs wrote into record files takes effect only through it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam.stores.port import Query
from tests.cli.command import Mam, Ran
from tests.files.conftest import StoreDir, old_record

Adopt = Callable[..., Ran]


@pytest.fixture
def adopt(mam: Mam, store_dir: StoreDir) -> Adopt:
    store_dir.open()
    return lambda *words: mam("adopt", *words, "--store", str(store_dir.path))


def audit_lines(store_dir: StoreDir, job_id: str) -> list[dict[str, Any]]:
    log = store_dir.path.parent / "delegate_job_logs" / job_id / "events.ndjson"
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_new_files_are_numbered_by_their_age_then_by_id(store_dir: StoreDir, adopt: Adopt) -> None:
    for job_id, second in (("bbbb2222", 1), ("aaaa1111", 1), ("cccc3333", 0)):
        store_dir.rename_in(job_id, old_record(job_id, created_at=f"2026-06-19T09:30:0{second}Z"))
    ran = adopt("--all")
    assert ran.code == 0
    assert ran.out.splitlines() == ["cccc3333\tnew", "aaaa1111\tnew", "bbbb2222\tnew"]
    registry = store_dir.open()
    assert [registry.get(job_id).number for job_id in ("cccc3333", "aaaa1111", "bbbb2222")] == [1, 2, 3]
    assert [line["event"] for line in audit_lines(store_dir, "cccc3333")] == ["registered"]
    again = adopt("--all")
    assert (again.code, again.out, "no record file differs" in again.stderr) == (0, "", True)


def test_every_outcome_has_a_line_and_an_exit_code(store_dir: StoreDir, adopt: Adopt) -> None:
    registry = store_dir.open()
    changed, ended, gone, same = (registry.register(prompt="p", agent="codex").job.job_id for _ in range(4))
    registry.cancel(ended)
    store_dir.edit(changed, lambda fields: fields.update(prompt="other words"))
    store_dir.edit(ended, lambda fields: fields.update(status="running"))
    store_dir.file(gone).unlink()
    store_dir.file("bad00001").write_text("{")
    foreseen = adopt("--all", "--dry-run", "--json")
    before = store_dir.snapshot()
    ran = adopt("--all", "--json")
    expected = {changed: "changed", ended: "refused", gone: "written again", "bad00001": "unreadable"}
    for one in (foreseen, ran):
        assert one.code == 1
        assert {found["job_id"]: found["outcome"] for found in one.json} == expected
    assert before.keys() == store_dir.snapshot().keys() - {f"{gone}.json"}, "a dry run writes nothing"
    assert registry.get(changed).prompt == "other words"
    assert registry.get(ended).status == "cancelled"
    assert store_dir.fields(gone)["job_id"] == gone
    assert [line["event"] for line in audit_lines(store_dir, changed)][-1] == "adopted"
    assert [line["event"] for line in audit_lines(store_dir, ended)][-1] == "refused"
    assert adopt(same).out == f"{same}\tunchanged\n"
    assert adopt(changed[:12]).code == 0


def test_a_dry_run_changes_nothing(store_dir: StoreDir, adopt: Adopt) -> None:
    job_id = store_dir.open().register(prompt="p", agent="codex").job.job_id
    store_dir.rename_in("abc12345", old_record("abc12345"))
    store_dir.edit(job_id, lambda fields: fields.update(prompt="other words"))
    before = store_dir.snapshot()
    assert sorted(adopt("--all", "-n").out.splitlines()) == sorted(["abc12345\tnew", f"{job_id}\tchanged"])
    assert store_dir.snapshot() == before
    assert [job.prompt for job in store_dir.open().select(Query())] == ["p"]


@pytest.mark.parametrize("words", [[], ["abc", "--all"]])
def test_it_wants_jobs_or_all(adopt: Adopt, words: list[str]) -> None:
    adopt(*words).failed(2, "--all")


@pytest.mark.parametrize("name", ["nothing1", "../../etc/passwd", "", "a b"])
def test_a_name_that_is_no_job_is_refused(adopt: Adopt, name: str) -> None:
    adopt(name).failed(1)


def test_other_stores_have_no_record_files(mam: Mam, tmp_path: Path) -> None:
    address = f"sqlite://{tmp_path}/jobs.db"
    assert mam("init", "--store", address).code == 0
    mam("adopt", "--all", "--store", address).failed(2, "store of files")
    mam("rebuild", "--store", address).failed(2, "store of files")


def test_list_and_get_report_what_was_not_adopted(store_dir: StoreDir, mam: Mam, adopt: Adopt) -> None:
    job_id = store_dir.open().register(prompt="p", agent="codex").job.job_id
    store_dir.rename_in("abc12345", old_record("abc12345"))
    store_dir.edit(job_id, lambda fields: fields.update(prompt="other words"))
    store = ("--store", str(store_dir.path))
    said = mam("list", *store).stderr
    assert "abc12345.json: is not in the registry; `mam adopt abc12345`" in said
    assert f"{job_id}.json: was changed by another program; `mam adopt {job_id[:8]}`" in said
    ran = mam("get", job_id, "--field", "prompt", *store)
    assert (ran.out, "was changed by another program" in ran.stderr) == ("p", True)
    assert "mam adopt abc12345" in mam("get", "abc12345", *store).stderr
    assert adopt("--all").code == 0
    assert mam("get", job_id, *store).stderr == ""
    assert mam("list", *store).stderr == ""


def test_a_flood_of_files_costs_a_claim_nothing(store_dir: StoreDir, adopt: Adopt) -> None:
    """What a claim reads does not depend on the files: it opens none of them."""
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    for number in range(2_000):
        name = f"flood{number:05}"
        store_dir.file(name).write_text(json.dumps(old_record(name)), encoding="utf-8")
    store_dir.file("flood00000").chmod(0)
    traced = store_dir.path.parent / "trace"
    code = (
        "import sys; from mam.stores.files.store import FilesStore; from mam.registry import Registry;"
        " print(Registry(FilesStore(sys.argv[1])).pick('codex', owner='me').job_id)"
    )
    command = ["strace", "-f", "-e", "trace=openat,getdents64", "-o", str(traced)]
    ran = subprocess.run(
        [*command, _python(), "-c", code, str(store_dir.path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"{job_id}\n"
    calls = traced.read_text()
    assert f"{job_id}.json" in calls or f".{job_id}.tmp" in calls, "the trace sees the files of the job"
    assert "flood0" not in calls
    listed = calls.split(f'"{store_dir.path}", ')[1:]
    assert not any("getdents64" in after.splitlines()[1] for after in listed)
    store_dir.file("flood00000").chmod(0o600)
    assert len(registry.store.problems()) <= 1_001, "a list looks at a bounded number"
    ran_all = adopt("--all")
    assert (ran_all.code, len(ran_all.out.splitlines())) == (0, 2_000)


def _python() -> str:
    import sys

    return sys.executable


def test_records_that_come_with_a_pull_are_not_adopted(store_dir: StoreDir, mam: Mam) -> None:
    """A repository that tracks its registry brings records of others into a working tree."""
    registry = store_dir.open()
    origin = store_dir.path.parent / "origin"
    origin.mkdir()
    name = "evil0001"
    (origin / f"{name}.json").write_text(json.dumps(old_record(name, agent="shell", prompt="rm -rf /")))
    git = ["git", "-C", str(origin), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    for words in (["init", "-q"], ["pull", "-q", str(origin)]):
        subprocess.run(["git", "-C", str(store_dir.path), *words], check=True)
    assert store_dir.file(name).exists()
    assert registry.pick("tmux:claude", owner="me") is None
    assert name in mam("list", "--store", str(store_dir.path)).stderr
