"""What the doctor finds around the store: programs, owners, network disks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.audit import cursor
from mam.doctor import audit_log, disk
from mam.doctor.context import Context
from mam.registry import Registry
from mam.stores.sqlite import file_system
from tests.doctor.doctor_command import Doctor


def test_programs_that_are_not_here(doctor: Doctor, tmp_path: Path) -> None:
    doctor.fill()
    programs = tmp_path / "programs"
    programs.mkdir()
    found = doctor.run(PATH=str(programs))
    notes = {note["what"]: note["mend"] for note in found.findings if note["check"] == "agents"}
    assert notes["tmux is not installed"] == "apt-get install tmux"
    assert notes["git is not installed"] == "apt-get install git"
    found.sound()


@pytest.mark.parametrize(("said", "shown"), [("tmux 3.3a", "tmux 3.3a"), ("tmux next-3.5", "tmux")])
def test_the_versions_of_programs_are_shown(doctor: Doctor, tmp_path: Path, said: str, shown: str) -> None:
    doctor.fill()
    program = tmp_path / "programs" / "tmux"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    assert shown in doctor.run(PATH=str(program.parent)).one("agents", "fine")["what"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_record_of_another_user_is_found(doctor: Doctor) -> None:
    ids = doctor.fill()
    os.chown(doctor.jobs / f"{ids[0]}.json", 65534, 65534)
    found = doctor.run().one("modes", "wrong")
    assert f"{ids[0]}.json" in found["what"]
    assert found["mend"] == f"sudo chown -R {os.geteuid()} {doctor.jobs}"
    os.chown(doctor.jobs / f"{ids[0]}.json", os.geteuid(), os.getegid())
    doctor.run().sound()


def test_a_network_file_system_is_found(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel would tell of it: the same device, under another name."""
    doctor.fill()
    device = os.stat(doctor.jobs).st_dev
    mounts = tmp_path / "mounts"
    mounts.write_text(f"36 35 {os.major(device)}:{os.minor(device)} / / rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(file_system, "MOUNTS", str(mounts))
    (found,) = disk.check(Context(None, str(doctor.jobs)))
    assert found.state == "wrong"
    assert "network file system (nfs4)" in found.what
    assert "PostgreSQL" in (found.mend or "")


def test_after_a_restart_the_audit_log_is_not_called_behind(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known to be missing, but a power cut may have removed lines, so mam checks them again."""
    ids = doctor.fill()
    monkeypatch.setattr(cursor, "boot_id", lambda: "another-boot")
    (found,) = audit_log.check(Context(None, str(doctor.jobs)))
    assert found.state == "note", found
    assert "restart" in found.what
    assert found.fix is not None
    found.fix()
    (found,) = audit_log.check(Context(None, str(doctor.jobs)))
    assert found.state == "fine", found

    registry = Registry(Context(None, str(doctor.jobs)).store)  # without a log
    registry.cancel(ids[0])
    monkeypatch.setattr(cursor, "boot_id", lambda: "a-third-boot")
    (found,) = audit_log.check(Context(None, str(doctor.jobs)))
    assert found.state == "wrong", "entries that were never copied are missing, with or without a restart"
