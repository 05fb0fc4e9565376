"""What each agent needs: the files and the keys that tell it of mam."""

from __future__ import annotations

import json
import os
import shutil
import sys

from mam import __version__
from mam.agent_table import CODING_AGENTS
from mam.errors import Refused
from mam.plugin.edits import JSON, TEXT, TOML, Wanted
from mam.plugin.hooks import SCRIPT, codex_hooks, hooks_file, script
from mam.skill import NAME, skill_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CLAUDE, CODEX, OPENCODE, GEMINI = "claude-code", "codex", "opencode", "gemini"
MARKETPLACE = "mam-jobs"
"""The name of the plugin's source in Claude Code: the directory in which mam writes it."""

PASSED = (
    "MAM_STORE", "MAM_CONFIG", "MAM_JOB_ID", "MAM_ATTEMPT", "MAM_CLAIM", "MAM_SOCKET", "MAM_SESSION_DIR",
    "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME",
)  # fmt: skip
"""Variables that Codex passes on to the server; it passes no others."""


def wanted_files(agent: str, project: str | None) -> list[Wanted]:
    """For the user, or for one project: the directory `project`."""
    wanted = AGENTS[agent](project)
    for one in wanted if project is not None else ():
        _check_inside(str(project), one.path)
    return wanted


def _check_inside(project: str, path: str) -> None:
    """A link in a repository could lead to any file of the user."""
    real = os.path.realpath(path)
    if not real.startswith(f"{os.path.realpath(project).rstrip('/')}/"):
        raise Refused(why=f"{path} is a link to {real}, outside of this project; mam left it as it is.")


def present_agents() -> list[str]:
    """Those that are installed."""
    return [agent for agent in AGENTS if shutil.which(_PROGRAMS[agent])]


def server_command() -> list[str]:
    """By name where the user's PATH has mam, so that an update moves nothing."""
    start = ["mam"] if shutil.which("mam") else [sys.executable, "-P", "-m", "mam"]
    return [*start, "mcp"]


def _claude(project: str | None) -> list[Wanted]:
    if project is not None:
        return [_json(os.path.join(project, ".mcp.json"), ("mcpServers", NAME), _server()), _skill(project, ".claude")]
    tree = plugin_directory()
    settings = os.path.join(CODING_AGENTS[CLAUDE].home(), "settings.json")
    source = {"source": {"source": "directory", "path": tree}}
    values = (
        (("extraKnownMarketplaces", MARKETPLACE), source),
        (("enabledPlugins", f"{NAME}@{MARKETPLACE}"), True),
    )
    return [*plugin_tree(tree), Wanted(path=settings, kind=JSON, values=values)]


def plugin_tree(tree: str) -> list[Wanted]:
    """The plugin as a directory that Claude Code and Codex can read."""
    about = {"name": NAME, "version": __version__, "description": "Delegate jobs to other coding agents with mam"}
    listed = {"name": NAME, "source": f"./{NAME}", "description": about["description"]}
    files = {
        ".claude-plugin/marketplace.json": {"name": MARKETPLACE, "owner": {"name": "mam"}, "plugins": [listed]},
        f"{NAME}/.claude-plugin/plugin.json": {**about, "license": "MIT"},
        f"{NAME}/.mcp.json": {"mcpServers": {NAME: {**_server(), "env_vars": list(PASSED)}}},
        f"{NAME}/hooks/hooks.json": hooks_file(),
    }
    texts = {name: json.dumps(content, indent=2) + "\n" for name, content in files.items()}
    texts[f"{NAME}/skills/{NAME}/SKILL.md"] = skill_text()
    texts[f"{NAME}/{SCRIPT}"] = script()
    return [Wanted(path=os.path.join(tree, name), kind=TEXT, text=text) for name, text in texts.items()]


def plugin_directory() -> str:
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(os.path.abspath(base), "mam", "plugin")


def _codex(project: str | None) -> list[Wanted]:
    command, *arguments = server_command()
    server = (("mcp_servers", NAME), {"command": command, "args": arguments, "env_vars": list(PASSED)})
    if project is not None:
        path = os.path.join(project, ".codex", "config.toml")
        return [Wanted(path=path, kind=TOML, values=(server,)), _skill(project, ".agents")]
    path, tree = os.path.join(CODING_AGENTS[CODEX].home(), "config.toml"), plugin_directory()
    items, trust = codex_hooks(CODEX, os.path.join(tree, NAME), path, _held(path))
    settings = Wanted(path=path, kind=TOML, values=(server, *trust), items=tuple(items))
    return [*plugin_tree(tree), settings, _skill(project, ".agents")]


def _held(path: str) -> dict[str, Any]:
    """What the settings hold now; nothing if they cannot be read, which the edit of them reports."""
    import tomllib

    from mam.plugin.installation import read_text

    try:
        return tomllib.loads(read_text(path) or "")
    except (Refused, ValueError, RecursionError):
        return {}


def _opencode(project: str | None) -> list[Wanted]:
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    folder = os.path.join(config, "opencode") if project is None else project
    server = {"type": "local", "command": server_command(), "enabled": True}
    return [_json(os.path.join(folder, "opencode.json"), ("mcp", NAME), server), _skill(project, ".agents")]


def _gemini(project: str | None) -> list[Wanted]:
    folder = os.path.join(os.path.expanduser("~") if project is None else project, ".gemini")
    return [_json(os.path.join(folder, "settings.json"), ("mcpServers", NAME), _server()), _skill(project, ".agents")]


def _server() -> dict[str, object]:
    command, *arguments = server_command()
    return {"command": command, "args": arguments}


def _json(path: str, keys: tuple[str, ...], value: object) -> Wanted:
    return Wanted(path=path, kind=JSON, values=((keys, value),))


def _skill(project: str | None, folder: str) -> Wanted:
    base = os.path.expanduser("~") if project is None else project
    return Wanted(path=os.path.join(base, folder, "skills", NAME, "SKILL.md"), kind=TEXT, text=skill_text())


AGENTS: dict[str, Callable[[str | None], list[Wanted]]] = {
    CLAUDE: _claude, CODEX: _codex, OPENCODE: _opencode, GEMINI: _gemini,
}  # fmt: skip
_PROGRAMS = {**{name: kind.program for name, kind in CODING_AGENTS.items()}, GEMINI: "gemini"}
