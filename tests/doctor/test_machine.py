"""What the doctor finds around the store: programs, owners, network disks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.audit import cursor
from mam.doctor import audit_log, disk
from mam.doctor.context import Patient
from mam.registry import Registry
from mam.stores.sqlite import file_system
from tests.doctor.ward import Ward


def test_programs_that_are_not_here(ward: Ward, tmp_path: Path) -> None:
    ward.fill()
    programs = tmp_path / "programs"
    programs.mkdir()
    found = ward.examined(PATH=str(programs))
    notes = {note["what"]: note["mend"] for note in found.findings if note["check"] == "agents"}
    assert notes["tmux is not installed"] == "apt-get install tmux"
    assert notes["git is not installed"] == "apt-get install git"
    found.sound()


@pytest.mark.parametrize(("said", "shown"), [("tmux 3.3a", "tmux 3.3a"), ("tmux next-3.5", "tmux")])
def test_versions_of_programs(ward: Ward, tmp_path: Path, said: str, shown: str) -> None:
    ward.fill()
    program = tmp_path / "programs" / "tmux"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    assert shown in ward.examined(PATH=str(program.parent)).of("agents", "fine")["what"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_record_of_another_user(ward: Ward) -> None:
    ids = ward.fill()
    os.chown(ward.jobs / f"{ids[0]}.json", 65534, 65534)
    found = ward.examined().of("modes", "wrong")
    assert f"{ids[0]}.json" in found["what"]
    assert found["mend"] == f"sudo chown -R {os.geteuid()} {ward.jobs}"
    os.chown(ward.jobs / f"{ids[0]}.json", os.geteuid(), os.getegid())
    ward.examined().sound()


def test_a_network_file_system(ward: Ward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel would tell of it: the same device, under another name."""
    ward.fill()
    device = os.stat(ward.jobs).st_dev
    mounts = tmp_path / "mounts"
    mounts.write_text(f"36 35 {os.major(device)}:{os.minor(device)} / / rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(file_system, "MOUNTS", str(mounts))
    (found,) = disk.look(Patient(None, str(ward.jobs)))
    assert found.state == "wrong"
    assert "network file system (nfs4)" in found.what
    assert "PostgreSQL" in (found.mend or "")


def test_after_a_restart_the_audit_log_is_not_called_behind(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lacks nothing that anybody knows of; what a power cut may have taken from it is looked up once more."""
    ids = ward.fill()
    monkeypatch.setattr(cursor, "boot_id", lambda: "another-boot")
    (found,) = audit_log.look(Patient(None, str(ward.jobs)))
    assert found.state == "note", found
    assert "restarted" in found.what
    assert found.fix is not None
    found.fix()
    (found,) = audit_log.look(Patient(None, str(ward.jobs)))
    assert found.state == "fine", found

    registry = Registry(Patient(None, str(ward.jobs)).store)  # without a log
    registry.cancel(ids[0])
    monkeypatch.setattr(cursor, "boot_id", lambda: "a-third-boot")
    (found,) = audit_log.look(Patient(None, str(ward.jobs)))
    assert found.state == "wrong", "what nobody has copied yet is missing, restart or not"
