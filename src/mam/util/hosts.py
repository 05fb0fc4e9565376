"""Which host names mean this host."""

from __future__ import annotations


def is_loopback(host: str) -> bool:
    parts = host.split(".")
    if len(parts) == 4 and parts[0] == "127":
        return all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts)
    return host in ("localhost", "::1")
