"""A database on a network file system is refused; none can be mounted here, so the list of mounts is a made-up one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mam.errors import StoreUnavailable
from mam.stores.sqlite import file_system as places
from mam.stores.sqlite.file_system import NETWORK, network_file_system
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.sqlite.conftest import StoreFile


def mounts(folder: Path, kind: str) -> Path:
    """As if the device that the folder is on were of this kind."""
    found = os.stat(folder).st_dev
    device = f"{os.major(found)}:{os.minor(found)}"
    file = folder / "mountinfo"
    lines = [
        "21 1 0:19 / /sys rw,nosuid shared:2 - sysfs sysfs rw",
        f"36 35 {device} / /mnt/a\\040b rw,noatime master:1 - {kind} server:/export rw,vers=4",
        "a line that is none",
        "",
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_a_network_file_system_is_known_by_its_kind(tmp_path: Path) -> None:
    assert {"nfs4", "cifs"} <= NETWORK
    for kind in NETWORK:
        assert network_file_system(str(tmp_path / "jobs.db"), str(mounts(tmp_path, kind))) == kind
        assert network_file_system(str(tmp_path / "not" / "yet" / "jobs.db"), str(mounts(tmp_path, kind))) == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse", "fuseblk", "fuse.encfs", ""])
def test_a_local_or_unknown_file_system_is_not_a_network_file_system(tmp_path: Path, kind: str) -> None:
    assert network_file_system(str(tmp_path), str(mounts(tmp_path, kind))) is None


def test_without_a_list_of_mounts_nothing_is_refused(tmp_path: Path) -> None:
    assert network_file_system(str(tmp_path), str(tmp_path / "none")) is None


def test_here_nothing_is_on_the_network(tmp_path: Path) -> None:
    assert network_file_system(str(tmp_path)) is None


def test_it_is_neither_made_nor_opened_there(
    store_file: StoreFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOUNTS", str(mounts(tmp_path, "nfs4")))
    before = store_file.path.read_bytes()
    with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\)"):
        SqliteStore(str(store_file.path))
    with pytest.raises(StoreUnavailable, match="network file system"):
        create_sqlite_store(str(tmp_path / "folder" / "new.db"))
    assert not (tmp_path / "folder").exists()
    assert store_file.path.read_bytes() == before


@pytest.mark.parametrize("verb", [["list"], ["register", "p", "--agent", "a"], ["init"], ["pick", "-s", "x"]])
def test_the_command_reports_it_in_one_line(store_file: StoreFile, tmp_path: Path, verb: list[str]) -> None:
    code = (
        "import sys; from mam.stores.sqlite import file_system; file_system.MOUNTS = sys.argv.pop(1);"
        " from mam.__main__ import main; main()"
    )
    command = [sys.executable, "-c", code, str(mounts(tmp_path, "cifs")), *verb, "--store", store_file.address]
    environment = {**os.environ, "HOME": str(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (9, ""), ran.stderr
    assert "network file system (cifs)" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
