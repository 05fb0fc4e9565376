"""Faults around the store: databases, brokers, git, disks; and what the doctor shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import psycopg
import pytest

from mam.doctor.versions import sqlite_findings
from tests.disks import fill
from tests.doctor.doctor_command import Doctor
from tests.needs import need

if TYPE_CHECKING:
    from tests.bus.mosquitto import Mosquitto
    from tests.postgres.server import PrivateServer


# -- SQLite ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def database(doctor: Doctor) -> Path:
    path = doctor.here / "jobs.db"
    doctor.env["MAM_STORE"] = f"sqlite://{path}"
    doctor.fill()
    return path


def test_a_sound_database_has_no_finding(doctor: Doctor, database: Path) -> None:
    found = doctor.run()
    found.sound()
    assert "6 jobs" in found.one("records", "fine")["what"]
    assert doctor.run("--fix").code == 0


def test_a_database_that_was_written_by_hand(doctor: Doctor, database: Path) -> None:
    with apsw.Connection(str(database)) as connection:
        rows = connection.execute("SELECT job_id FROM job WHERE status = 'pending'").fetchall()
        (job_id,) = rows[0]
        connection.execute("UPDATE job SET extra = '{\"broker\": 5}' WHERE job_id = ?", (job_id,))
    found = doctor.run()
    assert any(str(job_id) in what for what in found.wrong())


def test_a_broken_page_of_a_database_is_found(doctor: Doctor, database: Path) -> None:
    with apsw.Connection(str(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    content = bytearray(database.read_bytes())
    content[8192 : 8192 + 4096] = b"\xff" * 4096
    database.write_bytes(content)
    found = doctor.run()
    assert found.code == 1
    assert any("damaged" in what or "malformed" in what for what in found.wrong())


def test_a_file_that_is_no_database(doctor: Doctor, database: Path) -> None:
    database.write_bytes(b"not a database at all" * 100)
    for suffix in ("-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    assert "not an SQLite database" in doctor.run().one("store", "wrong")["what"]


def test_an_older_schema_names_the_command_that_upgrades_it(doctor: Doctor, database: Path) -> None:
    with apsw.Connection(str(database)) as connection:
        connection.execute("PRAGMA user_version = 12")
    assert doctor.run().one("store", "wrong")["mend"].startswith("mam init --store sqlite://")


def test_an_open_database_is_closed(doctor: Doctor, database: Path) -> None:
    database.chmod(0o644)
    assert doctor.run("--fix").one("modes", "mended")
    assert database.stat().st_mode & 0o777 == 0o600


def test_a_database_that_another_process_keeps_locked(doctor: Doctor, database: Path) -> None:
    """What can be read without the lock is looked at all the same."""
    other = apsw.Connection(str(database))
    other.execute("BEGIN IMMEDIATE")
    found = doctor.run()
    other.close()
    assert found.one("locks", "wrong")["mend"] == f"ps -fp {os.getpid()}"
    assert found.one("store", "fine")
    found = doctor.run()
    found.sound()
    assert found.one("locks", "fine")["what"] == "no process holds the store's or the audit log's lock"


@pytest.mark.parametrize(("version", "state"), [("3.51.2", "wrong"), ("3.7.0", "wrong"), ("3.51.3", "fine")])
def test_the_versions_of_sqlite_that_may_lose_pages(version: str, state: str) -> None:
    assert [finding.state for finding in sqlite_findings(version)] == [state]


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


def test_a_postgresql_store_is_checked(doctor: Doctor, server: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = doctor.env["MAM_STORE"] = server.empty_database()
    monkeypatch.chdir(doctor.here)  # its history is kept where jobs of this directory would be
    ids = doctor.fill()
    found = doctor.run()
    found.sound()
    assert "PostgreSQL" in str(found.findings)
    assert found.one("clock", "fine")["what"] == "the clock is after every record and as the server's"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE mam.job SET extra = '{\"broker\": 5}' WHERE job_id = %s", (ids[2],))
    assert any(ids[2] in what for what in doctor.run().wrong())


def test_a_server_that_is_not_there(doctor: Doctor) -> None:
    found = doctor.run(MAM_STORE="postgresql://anna:p4ss@127.0.0.1:1/jobs")
    assert found.one("store", "wrong")
    assert "p4ss" not in str(found.findings)
    assert "server" not in found.one("clock", "fine")["what"]
    assert found.one("locks", "fine")["what"] == "no process holds the audit log's lock"


# -- the broker ------------------------------------------------------------------------------------------------------


def test_events_wait_for_an_unreachable_broker(doctor: Doctor, broker: Mosquitto) -> None:
    doctor.env.update(broker.env)
    broker.stop()
    doctor("register", "x", "--agent", "shell")
    job = doctor("pick", "-s", "shell").line
    doctor("complete", job)
    found = doctor.run()
    assert sum(what.startswith("broker") for what in found.wrong()) == 2
    assert not any(one["fixable"] for one in found.findings if one["check"] == "broker")

    broker.start()

    assert doctor.run().one("broker", "wrong")["mend"] == "mam relay --once"
    assert doctor.run("--fix").one("broker", "mended")
    doctor.run().sound()


def test_an_insecure_broker_is_reported_and_not_contacted(doctor: Doctor) -> None:
    doctor.fill()
    assert "TLS" in doctor.run(MQTT_BROKER="192.0.2.1").one("broker", "wrong")["what"]


# -- git -------------------------------------------------------------------------------------------------------------


def _git(doctor: Doctor, *words: str) -> None:
    need("git")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *author, *words], cwd=doctor.here, check=True, capture_output=True)


def test_a_registry_that_git_tracks_is_found(doctor: Doctor) -> None:
    _git(doctor, "init", "-q")
    doctor.fill()
    doctor.run().sound()

    (doctor.here / ".mam/.gitignore").unlink()
    assert doctor.run().one("git", "wrong")["fixable"]
    assert doctor.run("--fix").one("git", "mended")
    doctor.run().sound()

    _git(doctor, "add", "-f", ".mam/jobs")
    _git(doctor, "commit", "-qm", "oops")
    found = doctor.run("--fix").one("git", "wrong")
    command = found["mend"].partition(", then")[0]
    subprocess.run(["sh", "-c", command], cwd=doctor.here, check=True)
    doctor.run().sound()


# -- disks -----------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_damages_nothing(small_disk: Path) -> None:
    (small_disk / "project").mkdir()
    (small_disk / "home").mkdir()
    doctor = Doctor(small_disk / "project", small_disk / "home")
    ids = doctor.fill()
    ballast = fill(small_disk)
    assert "left on the disk" in doctor.run().one("disk", "wrong")["what"]
    doctor.run("--fix")
    ballast.unlink()
    assert doctor.status(ids[2]) == "completed"


# -- what is not mam's -----------------------------------------------------------------------------------------------


def _stamps(place: Path) -> dict[str, tuple[int, int, int]]:
    found = {path.name: path.stat() for path in place.iterdir()}
    return {name: (about.st_mode, about.st_ino, about.st_mtime_ns) for name, about in found.items()}


@pytest.mark.parametrize("kind", ["directory", "database", "log"])
def test_foreign_directories_are_neither_opened_nor_repaired(doctor: Doctor, kind: str) -> None:
    """A directory without a store stays unchanged, even with `--fix`."""
    place = doctor.home / "etc"
    place.mkdir(mode=0o755)
    for name in ("passwd", "config.json", "notes.txt", ".lock", "meta.json"):
        (place / name).write_text('{"job_id": "other"}')
        (place / name).chmod(0o666)
    before = _stamps(place)
    if kind == "log":
        doctor.fill()
        doctor.env["DELEGATE_JOB_LOGS_DIR"] = str(place / "sub")
        (place / "sub").mkdir(mode=0o755)
        (place / "sub/notes.txt").write_text("x")
        (place / "sub/notes.txt").chmod(0o666)
        doctor.run("--fix")
        assert (place / "sub/notes.txt").stat().st_mode & 0o777 == 0o666
        return
    address = str(place) if kind == "directory" else f"sqlite://{place}/passwd"
    ran = doctor("doctor", "--fix", "--store", address)
    assert "this is a bug" not in ran.out
    assert _stamps(place) == before


# -- what it looks like ----------------------------------------------------------------------------------------------


def test_findings_are_columns_in_a_pipe_and_text_on_a_terminal(doctor: Doctor) -> None:
    doctor.fill()
    (doctor.inside / "secrets.damaged").write_text("{")
    (doctor.inside / "secrets.damaged").chmod(0o600)
    ran = doctor("doctor")
    assert ran.code == 1
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert all(len(row) == 5 for row in rows)
    assert ran.stderr == "mam: 1 problem found\n"
    shown = doctor.on_terminal("doctor", columns=80)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.out).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("→ inspect it, then rm") for line in lines)


def test_every_check_can_be_broken_without_a_traceback(doctor: Doctor) -> None:
    """A tree in which nothing is what it should be."""
    doctor.fill()
    for name in ("registry.db", "journal.log"):
        (doctor.inside / name).unlink()
        (doctor.inside / name).mkdir()
    os.mkfifo(doctor.jobs / "aaaaaaaa.json")
    (doctor.jobs / "bbbbbbbb.json").symlink_to("/etc/passwd")
    ran = doctor("doctor", "--fix")
    assert "Traceback" not in ran.stderr + ran.out
    assert "this is a bug" not in ran.out
    assert ran.code == 1
