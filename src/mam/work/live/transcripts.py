"""Whether an agent's own transcript has a prompt of ours: the second best proof that a turn has begun.

Only the ends of files that changed lately are read. Where they are is known from a hook, else from where each agent
keeps them by default.
"""

from __future__ import annotations

import os
import stat
import time
from glob import iglob
from itertools import islice

from mam.agents.hooking import CLAUDE, CODEX

TAIL = 512 * 1024
LATELY_SECONDS = 600.0
_MOST = 5000


def transcript_has(mark: str, tool: str, known: str = "") -> bool:
    paths = [known] if known else []
    paths += islice(iglob(_pattern(tool), recursive=True), _MOST) if _pattern(tool) else []
    return any(_has(path, mark.encode()) for path in paths)


def _pattern(tool: str) -> str:
    home = os.path.expanduser("~")
    if tool == CLAUDE:
        return os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "projects/*/*.jsonl")
    if tool == CODEX:
        return os.path.join(os.environ.get("CODEX_HOME") or os.path.join(home, ".codex"), "sessions/**/rollout-*.jsonl")
    return ""


def _has(path: str, mark: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or time.time() - found.st_mtime > LATELY_SECONDS:
            return False
        os.lseek(descriptor, max(0, found.st_size - TAIL), os.SEEK_SET)
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
            if len(parts) > 2 * TAIL >> 16:
                break
        return mark in b"".join(parts)
    except OSError:
        return False
    finally:
        os.close(descriptor)
