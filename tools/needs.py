"""The programs that the tests run. `make test` calls this first: `python3 tools/needs.py`.

It installs what is missing where it may: on Debian, as root or with a sudo that asks for no password. Elsewhere it
prints the one line to type, and tests/needs.py skips the tests that run a missing program. With `CI` set a missing
program is an error. PostgreSQL is not here: it comes with the Python packages if the system has none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import NamedTuple


class Need(NamedTuple):
    program: str
    package: str
    """Debian's name."""
    purpose: str


NEEDS = (
    Need("bash", "bash", "the examples of the manual, completion"),
    Need("chromium", "chromium", "the page in a browser"),
    Need("faketime", "faketime", "a wall clock that jumps"),
    Need("fish", "fish", "completion"),
    Need("git", "git", "repositories and worktrees"),
    Need("ip", "iproute2", "hosts in network namespaces, and cut links"),
    Need("mkfs.ext4", "e2fsprogs", "power cuts on ext4"),
    Need("mkfs.xfs", "xfsprogs", "power cuts on XFS"),
    Need("mosquitto", "mosquitto", "a broker"),
    Need("mosquitto_passwd", "mosquitto", "a broker with passwords"),
    Need("mosquitto_pub", "mosquitto-clients", "a publisher that is not mam"),
    Need("mosquitto_sub", "mosquitto-clients", "a subscriber that is not mam"),
    Need("nginx", "nginx-light", "a proxy with TLS before the server"),
    Need("npm", "npm", "the checker of accessibility, the inspector of MCP, and the real coding agents"),
    Need("openssl", "openssl", "certificates and signatures"),
    Need("pgbouncer", "pgbouncer", "a pooler before PostgreSQL"),
    Need("ps", "procps", "the table of processes on systems without /proc"),
    Need("rsync", "rsync", "files that come into the inbox"),
    Need("strace", "strace", "kills, errors and power cuts at chosen system calls"),
    Need("systemd-analyze", "systemd", "units for systemd"),
    Need("tmux", "tmux", "live sessions"),
    Need("zsh", "zsh", "completion"),
)
PACKAGES = {need.program: need.package for need in NEEDS}


def found(program: str) -> str | None:
    """Its path. Debian has servers and makers of file systems in directories that only root searches."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(program, path=os.pathsep.join((path, "/usr/local/sbin", "/usr/sbin", "/sbin")))


def missing() -> list[str]:
    return [need.program for need in NEEDS if found(need.program) is None]


def to_type(programs: list[str]) -> str:
    """The command that brings them on Debian."""
    return " ".join(["apt-get install", *sorted({PACKAGES[program] for program in programs})])


def main() -> int:
    lacking = missing()
    administrator = _administrator() if lacking else None
    if administrator is not None:
        print(f"installing what the tests need: {to_type(lacking)} …", flush=True)
        _install(administrator, sorted({PACKAGES[program] for program in lacking}))
        lacking = missing()
    if not lacking:
        return 0
    if os.environ.get("CI"):
        print(f"the tests need {', '.join(lacking)}: {to_type(lacking)}", file=sys.stderr)
        return 1
    print(f"tests that need {', '.join(lacking)} will be skipped; to run them too: {to_type(lacking)}", file=sys.stderr)
    return 0


def _administrator() -> list[str] | None:
    """The words before a command that may install packages; None if there is no such command."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "--non-interactive"]
    if shutil.which("sudo") and subprocess.run([*sudo, "true"], capture_output=True, check=False).returncode == 0:
        return sudo
    return None


def _install(administrator: list[str], packages: list[str]) -> None:
    """The lists of packages are fetched only if the installation fails without: they may be old, or not there yet."""
    apt = [*administrator, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    install = [*apt, "install", "--yes", "--no-install-recommends", *packages]
    for command in (install, [*apt, "update"], install):
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if command is install and ran.returncode == 0:
            return
    print(ran.stderr.strip(), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
