"""Faults of a files store: each is planted, found, and mended if the doctor says that it can."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import apsw
import pytest

from tests.doctor.ward import Ward

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sound_store_is_sound_and_stays_as_it_is(ward: Ward) -> None:
    ward.fill()
    before = ward.content()
    found = ward.examined()
    found.sound()
    assert ward.examined("--fix").code == 0
    assert ward.content() == before
    assert "6 jobs" in found.of("records", "fine")["what"]


def test_nothing_is_there_yet(ward: Ward) -> None:
    found = ward.examined()
    found.sound()
    assert found.of("store", "note")["mend"].startswith("mam init --store ")
    assert "no store was opened" in found.of("clock", "fine")["what"]
    (ward.home / "state/mam").mkdir(parents=True, mode=0o700)
    assert ward.examined().of("modes", "fine")["what"] == "1 file or directory is yours alone"
    assert not (ward.here / ".mam").exists()


def test_a_damaged_database_names_the_verb_that_makes_it_anew(ward: Ward) -> None:
    ward.fill()
    database = ward.inside / "registry.db"
    for suffix in ("-wal", "-shm"):
        (ward.inside / f"registry.db{suffix}").unlink()
    database.write_bytes(b"not a database at all" * 100)
    assert ward.examined().of("store", "wrong")["mend"] == f"mam rebuild --store {ward.jobs}"
    assert ward("rebuild").code == 0
    ward.examined().sound()
    assert len(ward("list", "--json").json) == 6


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"job_id": "other"}'])
def test_a_record_that_cannot_be_read(ward: Ward, text: bytes) -> None:
    ids = ward.fill()
    record = ward.jobs / f"{ids[0]}.json"
    record.write_bytes(text)
    found = ward.examined()
    assert record.name in found.of("records", "note")["what"]
    assert record.read_bytes() == text


@pytest.mark.parametrize("how", ["changed", "new", "gone"])
def test_record_files_that_another_program_wrote_are_named(ward: Ward, how: str) -> None:
    job_id = ward.fill()[0]
    record = ward.jobs / f"{job_id}.json"
    fields = json.loads(record.read_bytes())
    if how == "gone":
        record.unlink()
    else:
        job_id = job_id if how == "changed" else "new00001"
        written = ward.jobs / f"{job_id}.json"
        written.write_text(json.dumps({**fields, "job_id": job_id, "prompt": "other"}))
        written.chmod(0o600)
    found = ward.examined()
    found.sound()
    assert found.of("records", "note")["mend"] == f"mam adopt {job_id}"
    assert ward("adopt", job_id).code == 0
    assert ward.examined().of("records", "fine")


def test_what_was_kept_aside_is_named(ward: Ward) -> None:
    job_id = ward.register("x")
    record = ward.jobs / f"{job_id}.json"
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "prompt": "other"}))
    ward("cancel", job_id)
    assert job_id in ward.examined().of("aside", "note")["what"]


@pytest.mark.parametrize("content", [b"", b"garbage\nmore garbage\nand more\n", b"\x00" * 500])
def test_a_journal_that_is_no_journal(ward: Ward, content: bytes) -> None:
    ward.fill()
    (ward.inside / "journal.log").write_bytes(content)
    before = {name: data for name, data in ward.content().items() if name.endswith(".json") and "/jobs/" in name}
    ward.examined()
    ward.examined("--fix")
    after = ward.content()
    assert all(after[name] == data for name, data in before.items())


def test_a_lock_that_somebody_sits_on(ward: Ward) -> None:
    """By the program that the documents recommend. It is told once, before anything waits for the lock."""
    ward.fill()
    command = ["flock", str(ward.jobs / ".lock"), "sh", "-c", "echo held; exec sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            found = ward.examined()
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
    assert found.of("locks", "wrong")["mend"] == f"ps -fp {holder.pid}"
    assert found.wrong()[1:] == [f"store: {ward.jobs}: its lock is held, so that it is not looked at; try again later."]
    found = ward.examined()
    found.sound()
    assert found.of("locks", "fine")["what"] == "nobody sits on the store's or the audit log's lock"


def test_modes_are_closed(ward: Ward) -> None:
    ids = ward.fill()
    record, log = ward.jobs / f"{ids[0]}.json", ward.here / f".mam/delegate_job_logs/{ids[0]}/meta.json"
    for path in (record, log, ward.inside / "journal.log"):
        path.chmod(0o664)
    (ward.here / ".mam/delegate_job_logs").chmod(0o775)
    assert "4 paths can be reached" in ward.examined().of("modes", "wrong")["what"]
    assert ward.examined("--fix").of("modes", "mended")
    assert [path.stat().st_mode & 0o777 for path in (record, log)] == [0o600, 0o600]
    ward.examined().sound()


def test_a_store_that_everybody_can_write(ward: Ward) -> None:
    ward.fill()
    ward.jobs.chmod(0o777)
    found = ward.examined()
    assert found.of("store", "wrong")["mend"].startswith("chmod go-w")
    assert ward.examined("--fix").of("modes", "mended")
    ward.examined().sound()


def test_leftovers_of_killed_writers_go_when_they_are_old(ward: Ward) -> None:
    ward.fill()
    names = [".store/secrets.0123456789ab.tmp", ".store/audit.failures.77.tmp"]
    foreign = ward.jobs / "notes.tmp"
    for path in (*(ward.jobs / name for name in names), foreign):
        _leave(path, hours=2)
    (ward.jobs / ".store/pauses.json.ba9876543210.tmp").write_text("being written")

    found = ward.examined()

    assert found.of("leftovers", "note")["fixable"]
    ward.examined("--fix")
    assert not any((ward.jobs / name).exists() for name in names)
    assert foreign.exists()
    assert (ward.jobs / ".store/pauses.json.ba9876543210.tmp").exists()


def test_what_a_killed_writer_left_of_a_record_goes(ward: Ward) -> None:
    ids = ward.fill()
    halves = [ward.jobs / f".{ids[0]}.tmp", ward.jobs / f".{ids[0]}.events.tmp", ward.jobs / f".{ids[0]}.0123abcd.tmp"]
    for half in halves:
        _leave(half, hours=1)
    assert halves[0].name in ward.examined().of("leftovers", "note")["what"]
    ward.examined("--fix")
    assert not any(half.exists() for half in halves)


def _leave(path: Path, hours: int) -> None:
    path.write_text("x")
    path.chmod(0o600)
    then = time.time() - hours * 3600
    os.utime(path, (then, then))


def test_secrets_that_could_not_be_read(ward: Ward) -> None:
    ward.fill()
    (ward.inside / "secrets.damaged").write_text("{")
    assert "tokens" in ward.examined().of("aside", "wrong")["why"]


def test_what_the_audit_log_lacks_is_caught_up(ward: Ward) -> None:
    ward.fill()
    logs = ward.here / ".mam/delegate_job_logs"
    shutil.rmtree(logs)
    logs.mkdir(mode=0o700)
    assert ward.examined().of("audit log", "wrong")["fixable"]
    assert ward.examined("--fix").of("audit log", "mended")
    ward.examined().sound()
    assert len([path for path in logs.iterdir() if path.is_dir()]) == 6
    ward("register", "x", "--agent", "shell", DELEGATE_JOB_LOGS_DIR=str(ward.here / "elsewhere"))
    assert "it lacks 1 entry of the journal" in ward.examined().of("audit log", "wrong")["what"]


def test_histories_that_somebody_removed_are_copied_again(ward: Ward) -> None:
    ids = ward.fill()
    ward("list")
    logs = ward.here / ".mam/delegate_job_logs"
    whole = {file: file.read_bytes() for file in logs.rglob("*.jsonl")}
    assert ward.examined().of("audit log", "fine")
    shutil.rmtree(logs / ids[0])
    shutil.rmtree(logs / ids[3])

    assert "2 jobs" in ward.examined().of("audit log", "wrong")["what"]
    assert ward.examined("--fix").of("audit log", "mended")

    assert {file: file.read_bytes() for file in logs.rglob("*.jsonl")} == whole
    assert ward.examined().of("audit log", "fine")


def test_an_audit_log_that_cannot_be_written_is_told_with_its_failures(ward: Ward) -> None:
    ward.fill()
    logs = ward.here / ".mam/delegate_job_logs"
    shutil.rmtree(logs)
    logs.write_text("in the way")
    ward.register("more")
    found = ward.examined()
    assert "failed" in found.of("audit log", "wrong")["what"]
    assert "mending it failed" in ward.examined("--fix").wrong()[0]
    logs.unlink()
    assert ward.examined("--fix").of("audit log", "mended")
    assert ward.examined().of("audit log", "fine")
    assert not (ward.inside / "audit.failures").exists()


def test_records_of_the_future(ward: Ward) -> None:
    ids = ward.fill()
    record = ward.jobs / f"{ids[0]}.json"
    fields = json.loads(record.read_bytes())
    record.write_text(json.dumps({**fields, "updated_at": "2099-01-01T00:00:00Z"}))
    assert ward.examined().of("clock", "fine"), "what another program wrote does not count"
    with apsw.Connection(str(ward.inside / "registry.db")) as database:
        database.execute("UPDATE job SET updated_at = '2099-01-01T00:00:00Z' WHERE job_id = ?", (ids[0],))
    database.close()
    assert "in the future" in ward.examined().of("clock", "wrong")["what"]


def test_settings_that_nobody_can_read(ward: Ward) -> None:
    ward.fill()
    file = ward.home / "config/mam/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("on_idl = 1\n")
    assert ward.examined().of("settings", "wrong")["mend"] == "mam config edit"
    file.write_text('on_idle = "stop"\n')
    file.chmod(0o666)
    assert ward.examined("--fix").of("settings", "mended")
    assert file.stat().st_mode & 0o777 == 0o644


def test_an_open_lease_and_an_agent_that_is_not_here(ward: Ward) -> None:
    ids = ward.fill()
    ward("register", "x", "--agent", "no-such-agent")
    record = ward.jobs / f"{ids[1]}.json"
    fields = json.loads(record.read_bytes())
    fields["lease"] = {**fields["lease"], "expires_at": "2026-01-01T00:00:00.000Z", "boot_id": "other"}
    record.write_text(json.dumps(fields))
    found = ward.examined()
    found.sound()
    assert any("no-such-agent" in one["what"] for one in found.findings if one["check"] == "agents")
