"""The person whose rights this process has."""

from __future__ import annotations

import os


def user_at_host() -> str:
    from pwd import getpwuid

    try:
        user = getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return f"{user}@{os.uname().nodename}"


def process_name(pid: int) -> str:
    """The default owner of the claims of a process."""
    return f"{user_at_host()}:{pid}"
