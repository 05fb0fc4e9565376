"""`python -m tests.real_agents.alone COMMAND …`: runs a command where no network but loopback is.

Agents look for updates, report usage, and would use keys that they find. Nothing of that can leave a network namespace
of its own, whatever they try.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

_INSIDE = "MAM_TEST_ALONE"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def main(command: list[str]) -> None:
    if os.environ.get(_INSIDE) != "1":
        own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
        again = [sys.executable, "-m", "tests.real_agents.alone", *command]
        os.execvpe("unshare", ["unshare", *own_user, "--net", *again], {**os.environ, _INSIDE: "1"})
    _raise_loopback()
    assert is_alone(), "this network namespace has more than loopback"
    os.execvp(command[0], command)


def is_alone() -> bool:
    """Whether loopback is the only way out of here."""
    with open("/proc/net/dev", encoding="ascii") as file:
        return [line.split(":")[0].strip() for line in file.readlines()[2:]] == ["lo"]


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(asking, _GET_FLAGS, request))[1]
        fcntl.ioctl(asking, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _UP))


if __name__ == "__main__":
    main(sys.argv[1:])
