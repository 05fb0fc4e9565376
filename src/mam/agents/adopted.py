"""Panes of sessions that mam adopted. Their programs were started without mam's variables, so a hook finds its session
by the pane of tmux in which it runs.

One small file for each pane, named after the tmux server and the pane, so that the hook of any other session finds out
with one look that it has nothing to do.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.agents.tmux import Pane

FOLDER = "adopted"
"""In the user's state directory. The hooks of the plugin look for the file before they start mam."""


def note_adopted(pane: Pane, root: str, generation: str) -> None:
    """From now on, hooks in this pane belong to this generation of the session. Panes whose server has ended go."""
    from contextlib import suppress

    from mam.machine.processes import identify
    from mam.stores.private_files import replace_json_file
    from mam.util.state_dir import make_private, state_directory

    folder = make_private(os.path.join(state_directory(), FOLDER))
    for name in filter(_is_name, os.listdir(folder)):
        if _read(os.path.join(folder, name)) is None:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
    server = identify(pane.server_pid)
    if server is not None:
        found = {"root": root, "generation": generation, "server": server.to_json()}
        replace_json_file(os.path.join(folder, f"{pane.server_pid}{pane.pane}"), found)


def find_adopted(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The root and the generation of the session in whose pane this process runs."""
    server = environ.get("TMUX", "").rpartition(",")[0].rpartition(",")[2]
    name = f"{server}{environ.get('TMUX_PANE', '')}"
    if not _is_name(name):
        return None
    from mam.util.state_dir import state_directory

    return _read(os.path.join(state_directory(), FOLDER, name))


def _read(path: str) -> tuple[str, str] | None:
    """None also if the server has ended: another one may have its number now."""
    from mam.machine.processes import ProcessId, is_alive
    from mam.stores.private_files import read_json_file

    found = read_json_file(path) if os.path.isfile(path) else None
    if not isinstance(found, dict):
        return None
    server, root, generation = ProcessId.from_json(found.get("server")), found.get("root"), found.get("generation")
    if server is None or not (isinstance(root, str) and isinstance(generation, str)) or not is_alive(server):
        return None
    return root, generation


def _is_name(text: str) -> bool:
    server, _, pane = text.partition("%")
    return text.isascii() and server.isdigit() and pane.isdigit()
