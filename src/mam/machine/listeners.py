"""Which process listens on a port of this host."""

from __future__ import annotations

import os

_LISTENING = "0A"


def holder_of_port(port: int) -> str | None:
    """`process 4711 (mam)`; None if the system does not tell. Its arguments could contain secrets."""
    inodes = {inode for table in ("tcp", "tcp6") for inode in _listening_sockets(f"/proc/net/{table}", port)}
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for name in os.listdir("/proc"):
        if name.isdigit() and not wanted.isdisjoint(_open_files(f"/proc/{name}/fd")):
            return f"process {name} ({_program(name)})"
    return "a process of another user"


def _listening_sockets(table: str, port: int) -> list[str]:
    try:
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]


def _open_files(directory: str) -> set[str]:
    found = set[str]()
    try:
        for name in os.listdir(directory):
            try:
                found.add(os.readlink(os.path.join(directory, name)))
            except OSError:
                continue
    except OSError:
        pass
    return found


def _program(pid: str) -> str:
    """Also for a script of Python: the words before the first option name the program."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return "unknown"
    if "mam" in words[1:4] or words[0].endswith("/mam") or any(word.endswith("/mam") for word in words[1:3]):
        return "mam serve" if "serve" in words else "mam"
    name = os.path.basename(words[0])
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:40] or "unknown"
