"""Faults of a files store: each is caused, found, and repaired if the doctor offers it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import apsw
import pytest

from tests.doctor.doctor_command import Doctor


def test_a_sound_store_is_sound_and_stays_as_it_is(doctor: Doctor) -> None:
    doctor.fill()
    before = doctor.content()
    found = doctor.run()
    found.sound()
    assert doctor.run("--fix").code == 0
    assert doctor.content() == before
    assert "6 jobs" in found.one("records", "fine")["what"]


def test_nothing_is_there_yet(doctor: Doctor) -> None:
    found = doctor.run()
    found.sound()
    assert found.one("store", "note")["mend"].startswith("mam init --store ")
    assert "no store was opened" in found.one("clock", "fine")["what"]
    (doctor.home / "state/mam").mkdir(parents=True, mode=0o700)
    assert doctor.run().one("modes", "fine")["what"] == "1 file or directory is accessible only to you"
    assert not (doctor.here / ".mam").exists()


def test_a_damaged_database_names_the_command_that_rebuilds_it(doctor: Doctor) -> None:
    doctor.fill()
    database = doctor.inside / "registry.db"
    for suffix in ("-wal", "-shm"):
        (doctor.inside / f"registry.db{suffix}").unlink()
    database.write_bytes(b"not a database at all" * 100)
    assert doctor.run().one("store", "wrong")["mend"] == f"mam rebuild --store {doctor.jobs}"
    assert doctor("rebuild").code == 0
    doctor.run().sound()
    assert len(doctor("list", "--json").json) == 6


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"job_id": "other"}'])
def test_a_record_that_cannot_be_read(doctor: Doctor, text: bytes) -> None:
    ids = doctor.fill()
    record = doctor.jobs / f"{ids[0]}.json"
    record.write_bytes(text)
    found = doctor.run()
    assert record.name in found.one("records", "note")["what"]
    assert record.read_bytes() == text


@pytest.mark.parametrize("how", ["changed", "new", "gone"])
def test_record_files_that_another_program_wrote_are_named(doctor: Doctor, how: str) -> None:
    job_id = doctor.fill()[0]
    record = doctor.jobs / f"{job_id}.json"
    fields = json.loads(record.read_bytes())
    if how == "gone":
        record.unlink()
    else:
        job_id = job_id if how == "changed" else "new00001"
        written = doctor.jobs / f"{job_id}.json"
        written.write_text(json.dumps({**fields, "job_id": job_id, "prompt": "other"}))
        written.chmod(0o600)
    found = doctor.run()
    found.sound()
    assert found.one("records", "note")["mend"] == f"mam adopt {job_id}"
    assert doctor("adopt", job_id).code == 0
    assert doctor.run().one("records", "fine")


def test_a_database_that_is_older_than_its_files_is_wrong_until_it_is_rebuilt(doctor: Doctor) -> None:
    job_id = doctor.register("x")
    database = doctor.inside / "registry.db"
    backup = {suffix: Path(f"{database}{suffix}").read_bytes() for suffix in ("", "-wal")}
    assert doctor("cancel", job_id).code == 0
    Path(f"{database}-shm").unlink()
    for suffix, content in backup.items():
        Path(f"{database}{suffix}").write_bytes(content)
    found = doctor.run().one("records", "wrong")
    assert (found["mend"], job_id in found["what"]) == ("mam rebuild", True)
    assert doctor("rebuild").code == 0
    assert doctor.run().one("records", "fine")


def test_files_moved_aside_are_named(doctor: Doctor) -> None:
    job_id = doctor.register("x")
    record = doctor.jobs / f"{job_id}.json"
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "prompt": "other"}))
    doctor("cancel", job_id)
    assert job_id in doctor.run().one("aside", "note")["what"]


@pytest.mark.parametrize("content", [b"", b"garbage\nmore garbage\nand more\n", b"\x00" * 500])
def test_a_journal_that_is_no_journal(doctor: Doctor, content: bytes) -> None:
    doctor.fill()
    (doctor.inside / "journal.log").write_bytes(content)
    before = {name: data for name, data in doctor.content().items() if name.endswith(".json") and "/jobs/" in name}
    doctor.run()
    doctor.run("--fix")
    after = doctor.content()
    assert all(after[name] == data for name, data in before.items())


def test_a_lock_that_a_process_holds(doctor: Doctor) -> None:
    """Held by flock, which the manual recommends. It is reported once, before anything waits for the lock."""
    doctor.fill()
    command = ["flock", str(doctor.jobs / ".lock"), "sh", "-c", "echo held; exec sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            found = doctor.run()
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
    assert found.one("locks", "wrong")["mend"] == f"ps -fp {holder.pid}"
    assert found.wrong()[1:] == [
        f"store: {doctor.jobs}: a process holds its lock, so mam does not check it; try again later."
    ]
    found = doctor.run()
    found.sound()
    assert found.one("locks", "fine")["what"] == "no process holds the store's or the audit log's lock"


def test_open_modes_are_found_and_closed(doctor: Doctor) -> None:
    ids = doctor.fill()
    record, log = doctor.jobs / f"{ids[0]}.json", doctor.here / f".mam/delegate_job_logs/{ids[0]}/meta.json"
    for path in (record, log, doctor.inside / "journal.log"):
        path.chmod(0o664)
    (doctor.here / ".mam/delegate_job_logs").chmod(0o775)
    assert "4 paths accessible" in doctor.run().one("modes", "wrong")["what"]
    assert doctor.run("--fix").one("modes", "mended")
    assert [path.stat().st_mode & 0o777 for path in (record, log)] == [0o600, 0o600]
    doctor.run().sound()


def test_a_world_writable_store(doctor: Doctor) -> None:
    doctor.fill()
    doctor.jobs.chmod(0o777)
    found = doctor.run()
    assert found.one("store", "wrong")["mend"].startswith("chmod go-w")
    assert doctor.run("--fix").one("modes", "mended")
    doctor.run().sound()


def test_leftovers_of_killed_writers_go_when_they_are_old(doctor: Doctor) -> None:
    doctor.fill()
    names = [".store/secrets.0123456789ab.tmp", ".store/audit.failures.77.tmp"]
    foreign = doctor.jobs / "notes.tmp"
    for path in (*(doctor.jobs / name for name in names), foreign):
        _leave(path, hours=2)
    (doctor.jobs / ".store/pauses.json.ba9876543210.tmp").write_text("being written")

    found = doctor.run()

    assert found.one("leftovers", "note")["fixable"]
    doctor.run("--fix")
    assert not any((doctor.jobs / name).exists() for name in names)
    assert foreign.exists()
    assert (doctor.jobs / ".store/pauses.json.ba9876543210.tmp").exists()


def test_temporary_files_of_a_killed_writer_are_removed(doctor: Doctor) -> None:
    ids = doctor.fill()
    halves = [
        doctor.jobs / f".{ids[0]}.tmp",
        doctor.jobs / f".{ids[0]}.events.tmp",
        doctor.jobs / f".{ids[0]}.0123abcd.tmp",
    ]
    for half in halves:
        _leave(half, hours=1)
    assert halves[0].name in doctor.run().one("leftovers", "note")["what"]
    doctor.run("--fix")
    assert not any(half.exists() for half in halves)


def _leave(path: Path, hours: int) -> None:
    path.write_text("x")
    path.chmod(0o600)
    then = time.time() - hours * 3600
    os.utime(path, (then, then))


def test_secrets_that_could_not_be_read(doctor: Doctor) -> None:
    doctor.fill()
    (doctor.inside / "secrets.damaged").write_text("{")
    assert "tokens" in doctor.run().one("aside", "wrong")["why"]


def test_missing_entries_of_the_audit_log_are_restored(doctor: Doctor) -> None:
    doctor.fill()
    logs = doctor.here / ".mam/delegate_job_logs"
    shutil.rmtree(logs)
    logs.mkdir(mode=0o700)
    assert doctor.run().one("audit log", "wrong")["fixable"]
    assert doctor.run("--fix").one("audit log", "mended")
    doctor.run().sound()
    assert len([path for path in logs.iterdir() if path.is_dir()]) == 6
    doctor("register", "x", "--agent", "shell", DELEGATE_JOB_LOGS_DIR=str(doctor.here / "elsewhere"))
    assert "it lacks 1 entry of the journal" in doctor.run().one("audit log", "wrong")["what"]


def test_removed_histories_are_copied_again(doctor: Doctor) -> None:
    ids = doctor.fill()
    doctor("list")
    logs = doctor.here / ".mam/delegate_job_logs"
    whole = {file: file.read_bytes() for file in logs.rglob("*.jsonl")}
    assert doctor.run().one("audit log", "fine")
    shutil.rmtree(logs / ids[0])
    shutil.rmtree(logs / ids[3])

    assert "2 jobs" in doctor.run().one("audit log", "wrong")["what"]
    assert doctor.run("--fix").one("audit log", "mended")

    assert {file: file.read_bytes() for file in logs.rglob("*.jsonl")} == whole
    assert doctor.run().one("audit log", "fine")


def test_an_unwritable_audit_log_is_reported_with_its_failures(doctor: Doctor) -> None:
    doctor.fill()
    logs = doctor.here / ".mam/delegate_job_logs"
    shutil.rmtree(logs)
    logs.write_text("in the way")
    doctor.register("more")
    found = doctor.run()
    assert "failed" in found.one("audit log", "wrong")["what"]
    assert "the repair failed" in doctor.run("--fix").wrong()[0]
    logs.unlink()
    assert doctor.run("--fix").one("audit log", "mended")
    assert doctor.run().one("audit log", "fine")
    assert not (doctor.inside / "audit.failures").exists()


def test_a_record_from_the_future_is_found(doctor: Doctor) -> None:
    ids = doctor.fill()
    record = doctor.jobs / f"{ids[0]}.json"
    fields = json.loads(record.read_bytes())
    record.write_text(json.dumps({**fields, "updated_at": "2099-01-01T00:00:00Z"}))
    assert doctor.run().one("clock", "fine"), "what another program wrote does not count"
    with apsw.Connection(str(doctor.inside / "registry.db")) as database:
        database.execute("UPDATE job SET updated_at = '2099-01-01T00:00:00Z' WHERE job_id = ?", (ids[0],))
    database.close()
    assert "in the future" in doctor.run().one("clock", "wrong")["what"]


def test_invalid_settings_are_found(doctor: Doctor) -> None:
    doctor.fill()
    file = doctor.home / "config/mam/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("on_idl = 1\n")
    assert doctor.run().one("settings", "wrong")["mend"] == "mam config edit"
    file.write_text('on_idle = "stop"\n')
    file.chmod(0o666)
    assert doctor.run("--fix").one("settings", "mended")
    assert file.stat().st_mode & 0o777 == 0o644


def test_an_open_lease_and_an_agent_that_is_not_here(doctor: Doctor) -> None:
    ids = doctor.fill()
    doctor("register", "x", "--agent", "no-such-agent")
    record = doctor.jobs / f"{ids[1]}.json"
    fields = json.loads(record.read_bytes())
    fields["lease"] = {**fields["lease"], "expires_at": "2026-01-01T00:00:00.000Z", "boot_id": "other"}
    record.write_text(json.dumps(fields))
    found = doctor.run()
    found.sound()
    assert any("no-such-agent" in one["what"] for one in found.findings if one["check"] == "agents")
