"""Opens the user's browser. The address contains a code, and other users can read the arguments of a process: so the
browser gets a private file that leads to the address."""

from __future__ import annotations

import html
import os
import webbrowser

from mam.util.state_dir import make_private, state_directory

NAME = "open.html"


def open_browser(address: str) -> None:
    path = os.path.join(make_private(state_directory()), NAME)
    if os.path.lexists(path):
        os.unlink(path)
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={html.escape(address)}">'
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(page)
    webbrowser.open(f"file://{path}")
