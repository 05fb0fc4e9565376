"""Detects network file systems: WAL needs shared memory, and so one host (sqlite.org/wal.html)."""

from __future__ import annotations

import os

MOUNTS = "/proc/self/mountinfo"
"""Only on Linux; elsewhere the kind of file system is unknown."""

NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "ceph", "fuse.ceph", "coda", "lustre", "beegfs",
     "gpfs", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "fuse.davfs", "davfs", "fuse.rclone", "fuse.s3fs",
     "fuse.gcsfuse", "fuse.blobfuse", "fuse.juicefs", "gfs2", "ocfs2")
)  # fmt: skip
"""FUSE has local file systems too, so only known network ones are listed."""


def network_file_system(path: str, mounts: str | None = None) -> str | None:
    """The kind of network file system that holds the path; None when it is local or unknown."""
    try:
        device = os.stat(_existing(path)).st_dev
        with open(mounts or MOUNTS, encoding="utf-8", errors="replace") as file:
            kinds = {kind for number, kind in map(_mount, file) if number == f"{os.major(device)}:{os.minor(device)}"}
    except OSError:
        return None
    return next(iter(kinds & NETWORK), None)


def _existing(path: str) -> str:
    """The nearest existing parent: a new database will be on its file system."""
    while not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _mount(line: str) -> tuple[str, str]:
    """`36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`: the device and the kind of file system."""
    before, _, behind = line.partition(" - ")
    return (before.split(" ", 3) + [""] * 3)[2], behind.partition(" ")[0]
