"""Where a database may lie: WAL needs memory that all its readers share, and so one host (sqlite.org/wal.html)."""

from __future__ import annotations

import os

MOUNTS = "/proc/self/mountinfo"
"""Of this process; elsewhere than on Linux there is none, and nothing is known."""

NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "ceph", "fuse.ceph", "coda", "lustre", "beegfs",
     "gpfs", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "fuse.davfs", "davfs", "fuse.rclone", "fuse.s3fs",
     "fuse.gcsfuse", "fuse.blobfuse", "fuse.juicefs", "gfs2", "ocfs2")
)  # fmt: skip
"""Only those that are known to be one: FUSE carries local file systems too."""


def network_file_system(path: str, mounts: str | None = None) -> str | None:
    """The kind of network file system that the path is on, None when it is on a local one or nobody knows."""
    try:
        device = os.stat(_existing(path)).st_dev
        with open(mounts or MOUNTS, encoding="utf-8", errors="replace") as file:
            kinds = {kind for number, kind in map(_mount, file) if number == f"{os.major(device)}:{os.minor(device)}"}
    except OSError:
        return None
    return next(iter(kinds & NETWORK), None)


def _existing(path: str) -> str:
    """The nearest directory that is there: a new database will be where its directory is."""
    while not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _mount(line: str) -> tuple[str, str]:
    """`36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`: the device and the kind of file system."""
    before, _, behind = line.partition(" - ")
    return (before.split(" ", 3) + [""] * 3)[2], behind.partition(" ")[0]
