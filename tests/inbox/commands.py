"""The command `mam inbox` in an environment of its own, with typical settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.cli.command import Mam

if TYPE_CHECKING:
    from pathlib import Path

WHERE = "acme/shop/main"


class InboxCommand(Mam):
    """`inbox.drop(…)`, `inbox.once()`, `inbox.outcome(…)`: used as by a person, in `here`, which is the root."""

    def __init__(self, folder: Path) -> None:
        here, home = folder / "root", folder / "home"
        here.mkdir()
        (home / "config" / "mam").mkdir(parents=True)
        super().__init__(here, home)
        self.configure()

    def configure(self, inbox: str = "", queue: str = "", repos: str = "") -> None:
        text = f'[inbox]\nagent = "shell"\nsettle_seconds = 0.05\n{inbox}\n[queue]\n{queue}\n[repos]\n{repos}\n'
        (self.home / "config" / "mam" / "config.toml").write_text(text)

    def drop(self, content: str, name: str = "x.prompt.md", where: str = WHERE) -> Path:
        folder = self.here / "inbox" / where
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
        return folder / name

    def once(self, *words: str, code: int = 0) -> list[list[str]]:
        """The printed lines, split into columns."""
        ran = self("inbox", "once", *words)
        assert ran.code == code, ran.stderr
        return [line.split("\t") for line in ran.out.splitlines()]

    def outcome(self, name: str = "x.done.md", where: str = WHERE) -> str:
        return (self.here / "finished" / where / name).read_text()

    def left(self) -> list[str]:
        """The files in the inbox; directories may appear and disappear meanwhile."""
        top = self.here / "inbox"
        return sorted(
            os.path.relpath(os.path.join(place, name), top) for place, _, names in os.walk(top) for name in names
        )
