"""Open a file in the user's editor."""

from __future__ import annotations

import os

from mam.errors import BadInput, Refused


def open_editor(path: str) -> None:
    """VISUAL, EDITOR, otherwise vi. Raises if the editor does not start or does not succeed."""
    import shlex
    import subprocess

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(named), path], check=False).returncode
    except (OSError, ValueError) as error:
        raise BadInput(why=f"cannot start the editor {named[:80]}: {error}; set EDITOR to another") from None
    if ended != 0:
        raise Refused(why=f"the editor {named[:80]} exited with {ended}; nothing was changed")
