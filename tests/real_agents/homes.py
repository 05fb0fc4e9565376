"""A home for each agent: nothing of the user's, a key that opens nothing, and the scripted model as its only vendor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CLIS = Path(__file__).parents[2] / ".agents" / "node_modules" / ".bin"
"""Where `make test-agents` has put the real programs."""

KEY = "sk-ant-api03-not-a-key-000000000000000000000000000000000000000000000000"
MODELS = {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5.1-codex", "opencode": "scripted/scripted-1"}


def environment(agent: str, home: Path, model_url: str) -> dict[str, str]:
    """All that the agent, or a worker that starts it, may know of the world."""
    home.mkdir(parents=True, exist_ok=True)
    bare = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(CLIS), *os.environ["PATH"].split(os.pathsep)]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
    }
    return {**bare, **HOMES[agent](home, model_url)}


def _claude(home: Path, model_url: str) -> dict[str, str]:
    folder = home / ".claude"
    folder.mkdir(exist_ok=True)
    seen = {
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": "2.1.325",
        "numStartups": 5,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    (folder / ".claude.json").write_text(json.dumps(seen), "utf-8")
    return {
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": MODELS["claude-code"],
        "CLAUDE_CONFIG_DIR": str(folder),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex(home: Path, model_url: str) -> dict[str, str]:
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f"""
model = "{MODELS["codex"]}"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{model_url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[features]
plugins = false
""",
        "utf-8",
    )
    return {"CODEX_HOME": str(folder), "SCRIPTED_KEY": KEY}


def _opencode(home: Path, model_url: str) -> dict[str, str]:
    config = home / "opencode.json"
    model = {
        "name": "Scripted", "tool_call": True, "limit": {"context": 100000, "output": 8000},
        "cost": {"input": 3, "output": 15},
    }  # fmt: skip
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
        "options": {"baseURL": f"{model_url}/v1", "apiKey": KEY}, "models": {"scripted-1": model},
    }  # fmt: skip
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "model": MODELS["opencode"], "small_model": MODELS["opencode"], "autoupdate": False, "share": "disabled",
        "lsp": False, "formatter": False, "provider": {"scripted": provider},
    }  # fmt: skip
    config.write_text(json.dumps(settings), "utf-8")
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
    # With a plugin it first installs a package, and tries for a minute where there is no network.
    once = {"npm_config_fetch_retries": "0"}
    return {"OPENCODE_CONFIG": str(config), **once, **{f"OPENCODE_DISABLE_{name}": "1" for name in off}}


HOMES: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "opencode": _opencode,
}
"""Every agent that `make test-agents` runs, and what sets up its home."""
