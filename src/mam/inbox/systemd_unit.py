"""The text of a systemd user unit for a watcher, a worker or the server."""

from __future__ import annotations

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_UNIT = """\
# {name}: written by `mam service`. To use it:
#   mam service {what} … > ~/.config/systemd/user/{name}
#   systemctl --user enable --now {name}
[Unit]
Description={description}
After=network-online.target

[Service]
ExecStart={command}
WorkingDirectory={directory}
Environment={path}
Restart=on-failure
RestartSec=5
# On SIGTERM mam releases its jobs. systemd kills what still runs after a minute; those jobs return when their leases
# expire.
KillMode=mixed
TimeoutStopSec=60
UMask=0077

[Install]
WantedBy=default.target
"""


def unit_text(what: str, description: str, argv: Sequence[str], directory: str, path: str) -> str:
    return _UNIT.format(
        name=f"mam-{what}.service", what=what, description=description, command=" ".join(map(quote, argv)),
        directory=_escaped(directory), path=quote(f"PATH={path}", "Environment"),
    )  # fmt: skip


def quote(word: str, what: str = "ExecStart") -> str:
    """Quote a word for systemd: with its escapes, `%` doubled, and in a command `$` doubled."""
    word = _escaped(word).replace('"', '\\"')
    if what == "ExecStart":
        word = word.replace("$", "$$")
    return f'"{word}"' if not word or any(letter in word for letter in " \t'\"\\;") or what != "ExecStart" else word


def _escaped(word: str) -> str:
    if not word.isprintable():
        raise BadInput(why=f"{word[:80]!a} contains a character that unit files do not allow")
    return word.replace("%", "%%").replace("\\", "\\\\")
