"""Check that the store is on a local disk with free space."""

from __future__ import annotations

import os

from mam.doctor.finding import fine, wrong
from mam.stores.sqlite.file_system import network_file_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

LEAST_BYTES = 256 * 1024 * 1024
LEAST_FILES = 10_000


def check(context: Context) -> Iterator[Finding]:
    directory = context.directory
    if directory is None:
        return
    kind = network_file_system(directory)
    if kind is not None:
        yield wrong(
            f"{directory} is on a network file system ({kind})",
            "locks do not work across hosts there, so two workers may claim the same job",
            "move it to a local disk, or use PostgreSQL (docs/stores.md)",
        )
    found = os.statvfs(directory)
    free = found.f_bavail * found.f_frsize
    if free < LEAST_BYTES:
        yield wrong(
            f"only {free // 1024**2} MiB are left on the disk of {directory}",
            "on a full disk every write fails; acknowledged writes are not lost",
            f"df -h {directory}",
        )
    elif found.f_files > 0 and found.f_favail < LEAST_FILES:
        yield wrong(
            f"the disk of {directory} has room for only {found.f_favail} more files",
            "each job needs files of its own",
            f"df -i {directory}",
        )
    elif kind is None:
        yield fine(f"a local disk, {free / 1024**3:.1f} GiB free")
