"""One file for each kind of agent, imported when a job needs it."""

from __future__ import annotations

from mam.errors import UnknownAgent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.config.settings import Config
    from mam.work.adapters.port import Adapter

CODING_AGENTS = {
    "claude-code": "mam.work.adapters.claude_code",
    "codex": "mam.work.adapters.codex",
    "opencode": "mam.work.adapters.opencode",
}
_MODULES = {"shell": "mam.work.adapters.shell", "human": "mam.work.adapters.human", **CODING_AGENTS}


def load_adapter(name: str, config: Config) -> Adapter:
    """A user's own agent wins over one that mam knows, except for those whose meaning everybody relies on, and which
    the settings do not accept as a name."""
    if name in config.commands:
        from mam.work.adapters.command import CommandAdapter

        return CommandAdapter(name, config.commands[name])
    if name not in _MODULES:
        from mam.config.settings import config_file

        raise UnknownAgent(agent=name, known=", ".join(known_agents(config)), file=config_file())
    from importlib import import_module

    adapter: Adapter = import_module(_MODULES[name]).adapter()
    return adapter


def installed_agents(config: Config) -> list[str]:
    """Those that take a prompt in words and whose program is here; `shell` would run the words."""
    import os

    from mam.machine.environment import find_program

    def is_here(table: dict[str, Any]) -> bool:
        return find_program(os.path.expanduser(table["argv"][0]), {**os.environ, **table.get("env", {})}) is not None

    from importlib import import_module

    own = {name for name, table in config.commands.items() if is_here(table)}
    known = {name for name, module in CODING_AGENTS.items() if is_here({"argv": [import_module(module).PROGRAM]})}
    return sorted(own | {name for name in known if name not in config.commands})


def known_agents(config: Config) -> list[str]:
    return [*_MODULES, *sorted(name for name in config.commands if name not in _MODULES)]
