"""Where the sockets of a worker are, and how those of a killed worker are removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mam.errors import StoreUnavailable
from mam.work.door.socket_dir import SocketDir, is_private

if TYPE_CHECKING:
    from pathlib import Path


def test_a_private_runtime_directory_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = f"/tmp/mam-run-{os.urandom(4).hex()}"
    os.mkdir(runtime, 0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    try:
        place = SocketDir()
        assert os.path.dirname(place.path) == f"{runtime}/mam"
        assert is_private(f"{runtime}/mam")
        place.close()
        os.chmod(runtime, 0o755)
        open_to_all = SocketDir()
        assert not open_to_all.path.startswith(runtime)
        open_to_all.close()
        os.chmod(runtime, 0o700)
        os.rmdir(f"{runtime}/mam")
        os.symlink("/tmp", f"{runtime}/mam")
        elsewhere = SocketDir()
        assert not elsewhere.path.startswith(runtime)
        elsewhere.close()
    finally:
        os.unlink(f"{runtime}/mam")
        os.rmdir(runtime)


def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    for mode in (0o755, 0o711, 0o770):
        os.chmod(tmp_path, mode)
        with pytest.raises(StoreUnavailable):
            SocketDir(str(tmp_path))
    with pytest.raises(StoreUnavailable):
        SocketDir(str(tmp_path / ("long" * 30)))


def test_what_a_killed_worker_left_is_taken_away() -> None:
    base = f"/tmp/mam-base-{os.urandom(4).hex()}"
    os.mkdir(base, 0o700)
    program = (
        "import sys; from mam.registry import Registry; from mam.stores.memory import MemoryStore\n"
        "from mam.work.door.server import DoorServer; d = DoorServer(Registry(MemoryStore()), directory=sys.argv[1])\n"
        "print(d.open('job', 1, '/').address, flush=True); sys.stdin.read()"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", program, base], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    addresses = []
    for worker in workers:
        assert worker.stdout is not None
        addresses.append(worker.stdout.readline().decode().strip())
    killed, alive = workers
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    for address in addresses:
        assert os.path.exists(address)
        os.utime(os.path.dirname(address), (0, 0))
    os.mkdir(f"{base}/mam-door-other", 0o700)
    with open(f"{base}/mam-door-other/file", "w"):
        os.utime(f"{base}/mam-door-other", (0, 0))
    SocketDir(base).close()
    assert [os.path.exists(address) for address in addresses] == [False, True]
    assert not os.path.exists(os.path.dirname(addresses[0]))
    assert os.path.exists(f"{base}/mam-door-other/file")
    alive.communicate()
    os.utime(os.path.dirname(addresses[1]), (0, 0))
    SocketDir(base).close()
    os.unlink(f"{base}/mam-door-other/file")
    os.rmdir(f"{base}/mam-door-other")
    assert os.listdir(base) == []
    os.rmdir(base)
