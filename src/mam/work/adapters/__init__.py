"""Adapters: how mam gives a job to each kind of agent. One module per agent, imported when a job needs it."""

from __future__ import annotations

from mam.agent_table import AGENTS, CODING_AGENTS
from mam.errors import UnknownAgent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.config.settings import Config
    from mam.work.adapters.port import Adapter


def load_adapter(name: str, config: Config) -> Adapter:
    """A `[commands.NAME]` table takes precedence over the agent of that name. The settings reject `shell` and `human`
    as names of such tables."""
    if name in config.commands:
        from mam.work.adapters.command import CommandAdapter

        return CommandAdapter(name, config.commands[name])
    if name not in AGENTS:
        from mam.config.settings import config_file

        raise UnknownAgent(agent=name, known=", ".join(known_agents(config)), file=config_file())
    from importlib import import_module

    module = import_module(AGENTS[name].adapter)
    made: Adapter = module.adapter(config.agents.get(name, {})) if name in CODING_AGENTS else module.adapter()
    return made


def known_agents(config: Config) -> list[str]:
    return [*AGENTS, *sorted(name for name in config.commands if name not in AGENTS)]


def installed_agents(config: Config) -> list[str]:
    """Agents that take a prompt in words and whose program is on this machine. `shell` would execute the words."""
    own = {name for name, table in config.commands.items() if _is_installed(table["argv"][0], table.get("env", {}))}
    known = {name for name, kind in CODING_AGENTS.items() if _is_installed(kind.program)}
    return sorted(own | (known - config.commands.keys()))


def _is_installed(program: str, env: Mapping[str, str] | None = None) -> bool:
    import os

    from mam.machine.environment import find_program

    return find_program(os.path.expanduser(program), {**os.environ, **(env or {})}) is not None
