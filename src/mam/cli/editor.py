"""The user's editor: VISUAL, EDITOR, otherwise vi."""

from __future__ import annotations

import os

from mam.errors import BadInput, Refused


def open_editor(path: str) -> None:
    """Returns when the editor has ended with success."""
    import shlex
    import subprocess

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(named), path], check=False).returncode
    except (OSError, ValueError) as error:
        raise BadInput(why=f"cannot start the editor {named[:80]}: {error}; set EDITOR to another") from None
    if ended != 0:
        raise Refused(why=f"the editor {named[:80]} exited with {ended}; nothing was changed")
