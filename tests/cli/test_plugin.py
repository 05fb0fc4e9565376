"""The plugin: shown before it is written, found by `doctor` when it is gone, and taken back exactly."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from mam.plugin.edits import JSON, TOML, Wanted, applied, is_present, reverted
from tests.cli.command import Mam

AGENTS = ("claude-code", "codex", "opencode", "gemini")
SETTINGS = {
    "claude-code": (".claude/settings.json", '{\n    "model": "opus",\n    "env": {"KEY": "é"}\n}'),
    "codex": (".codex/config.toml", '# mine\nmodel = "o"   # the big one\n[mcp_servers.other]\ncommand = "x"\n'),
    "opencode": ("config/opencode/opencode.json", '{"mcp": {"other": {"type": "local", "command": ["x"]}}}\n'),
    "gemini": (".gemini/settings.json", '{\n\t"theme": "dark"\n}\n'),
}


def _tree(home: Path) -> dict[str, str]:
    files = (path for path in home.rglob("*") if path.is_file() and ".local/state" not in str(path))
    return {str(path.relative_to(home)): path.read_text("utf-8") for path in files}


def _settings(mam: Mam, agent: str) -> Path:
    name, text = SETTINGS[agent]
    path = mam.home / name
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path


def _server(path: Path) -> list[str]:
    """The command of mam's server in the settings of an agent."""
    if path.suffix == ".toml":
        found = tomllib.loads(path.read_text("utf-8"))["mcp_servers"]["mam"]
    else:
        whole = json.loads(path.read_text("utf-8"))
        found = whole.get("mcpServers", whole.get("mcp"))["mam"]
    command = found["command"]
    return list(command) if isinstance(command, list) else [command, *found["args"]]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_installed_is_taken_back_exactly(mam: Mam, agent: str) -> None:
    _settings(mam, agent)
    before = _tree(mam.home)
    dry = mam("plugin", "install", "--agent", agent, "--dry-run")
    assert _tree(mam.home) == before
    installed = mam("plugin", "install", "--agent", agent, "--yes")
    after = _tree(mam.home)
    again = mam("plugin", "install", "--agent", agent, "--yes")
    removed = mam("plugin", "remove", "--agent", agent, "--yes")

    assert (dry.code, installed.code, again.code, removed.code) == (0, 0, 0, 0), installed.stderr
    assert dry.out == installed.out
    assert f"+++ {mam.home / SETTINGS[agent][0]}" in dry.out
    changed = {name for name in after if after[name] != before.get(name)}
    assert all(f"+++ {mam.home / name}" in dry.out for name in changed)
    assert "is up to date" in again.stderr
    assert _tree(mam.home) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_without_settings_it_makes_them_and_removes_all_of_it(mam: Mam, agent: str) -> None:
    assert mam("plugin", "install", "--agent", agent, "--yes").code == 0
    assert _tree(mam.home)
    assert mam("plugin", "remove", "--yes").code == 0
    assert _tree(mam.home) == {}


@pytest.mark.parametrize("agent", AGENTS[1:])
def test_the_server_in_the_settings_answers(mam: Mam, agent: str) -> None:
    path = _settings(mam, agent)
    assert mam("plugin", "install", "--agent", agent, "--yes").code == 0
    line = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    ran = subprocess.run(
        _server(path), input=json.dumps(line).encode() + b"\n", capture_output=True, cwd=mam.here, env=mam.env
    )
    assert json.loads(ran.stdout)["result"] == {}


def test_what_the_user_changed_since_stays(mam: Mam) -> None:
    path = _settings(mam, "gemini")
    assert mam("plugin", "install", "--agent", "gemini", "--agent", "codex", "--yes").code == 0
    settings = json.loads(path.read_text("utf-8"))
    settings["mcpServers"]["other"] = {"command": "y"}
    path.write_text(json.dumps(settings), "utf-8")
    codex = mam.home / ".codex/config.toml"
    codex.write_text(codex.read_text("utf-8").replace('"mcp"', '"mcp", "--read-only"'), "utf-8")
    skill = mam.home / ".agents/skills/mam/SKILL.md"
    skill.write_text("mine", "utf-8")
    removed = mam("plugin", "remove", "--yes")

    assert removed.code == 0
    assert json.loads(path.read_text("utf-8")) == {"theme": "dark", "mcpServers": {"other": {"command": "y"}}}
    assert "--read-only" in codex.read_text("utf-8")
    assert skill.read_text("utf-8") == "mine"
    assert f"{skill} was changed since, so it stays" in removed.stderr


def test_a_skill_that_two_agents_share_stays_with_the_second(mam: Mam) -> None:
    mam("plugin", "install", "--agent", "codex", "--agent", "gemini", "--yes")
    skill = mam.home / ".agents/skills/mam/SKILL.md"
    mam("plugin", "remove", "--agent", "codex", "--yes")
    assert skill.exists()
    mam("plugin", "remove", "--agent", "gemini", "--yes")
    assert not skill.exists()


def test_for_a_project_it_writes_into_the_project(mam: Mam) -> None:
    subprocess.run(["git", "init", "-q"], cwd=mam.here, check=True)
    assert mam("plugin", "install", "--agent", "claude-code", "--agent", "codex", "--project", "--yes").code == 0
    written = {name for name in _tree(mam.here) if not name.startswith(".git/")}
    assert mam("plugin", "remove", "--project", "--yes").code == 0

    assert written == {
        ".mcp.json", ".claude/skills/mam/SKILL.md", ".codex/config.toml", ".agents/skills/mam/SKILL.md",
    }  # fmt: skip
    assert not {name for name in _tree(mam.here) if not name.startswith(".git/")}


def test_doctor_notices_what_another_program_changed(mam: Mam) -> None:
    mam("init")
    path = _settings(mam, "gemini")
    mam("plugin", "install", "--agent", "gemini", "--yes")
    fine = mam("doctor", "--json").json["findings"]
    path.write_text("{}", "utf-8")
    found = mam("doctor", "--json").json["findings"]
    assert mam("plugin", "install", "--agent", "gemini", "--yes").code == 0
    mended = mam("doctor", "--json").json["findings"]

    def about(results: list[dict[str, str]]) -> list[str]:
        return [result["what"] for result in results if result["check"] == "plugin"]

    assert about(fine) == about(mended) == ["the plugin is in place for gemini"]
    assert about(found) == [f"the plugin for gemini is not as mam wrote it: {path}"]


def test_doctor_notices_the_plugin_of_an_older_mam(mam: Mam) -> None:
    """It had no hooks."""
    mam("init")
    mam("plugin", "install", "--agent", "claude-code", "--yes")
    note = mam.home / ".local/state/mam/plugins/claude-code@user"
    known = json.loads(note.read_text("utf-8"))
    known["files"] = [file for file in known["files"] if "/hooks/" not in file["path"]]
    note.write_text(json.dumps(known), "utf-8")
    found = [result["what"] for result in mam("doctor", "--json").json["findings"] if result["check"] == "plugin"]

    assert found == ["the plugin for claude-code is of another version of mam"]


def test_nothing_is_written_without_consent(mam: Mam) -> None:
    refused = mam("plugin", "install", "--agent", "codex")
    assert (refused.code, "give --yes" in refused.stderr) == (2, True)
    assert _tree(mam.home) == {}
    mam("plugin", "install", "--agent", "vim").failed(2, "there is no plugin for 'vim'")
    inside = mam("plugin", "install", "--agent", "codex", "--yes", MAM_STORE_MARK="x")
    inside.failed(1, "only a person can do this")
    assert _tree(mam.home) == {}


@pytest.mark.parametrize("text", ["// a comment\n{}", "[]", "{", "null"])
def test_settings_that_mam_cannot_edit_are_left(mam: Mam, text: str) -> None:
    path = _settings(mam, "gemini")
    path.write_text(text, "utf-8")
    mam("plugin", "install", "--agent", "gemini", "--yes").failed(1, "is not JSON that mam can edit")
    assert path.read_text("utf-8") == text


def test_reversing_an_edit_restores_the_text() -> None:
    wanted = Wanted(path="f", kind=JSON, values=((("a", "b"), 1), (("c",), {"d": 2})))
    text = '{"c": 7, "x": 1}\n'
    after = applied(wanted, text)
    assert json.loads(after) == {"a": {"b": 1}, "c": {"d": 2}, "x": 1}
    assert is_present(wanted, after)
    assert not is_present(wanted, text)
    now = after.replace('"x": 1', '"x": 2')
    assert json.loads(reverted(wanted, text, now) or "") == {"c": 7, "x": 2}
    toml = Wanted(path="f", kind=TOML, values=((("t", "k"), {"args": ["a"]}),))
    assert reverted(toml, None, applied(toml, None)) is None
    assert "# kept" in (reverted(toml, "# kept\n", applied(toml, "# kept\n") + "n = 1\n") or "")


def test_a_link_of_a_repository_to_a_file_of_the_user_is_left_alone(mam: Mam) -> None:
    precious = mam.home / "precious"
    precious.write_text("mine\n", "utf-8")
    subprocess.run(["git", "init", "-q", str(mam.here)], check=True)
    skill = mam.here / ".claude/skills/mam/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.symlink_to(precious)

    refused = mam("plugin", "install", "--agent", "claude-code", "--project", "--yes")

    refused.failed(1, "outside of this project")
    assert precious.read_text("utf-8") == "mine\n"


def test_codex_keeps_the_hooks_of_the_user_and_trusts_those_of_mam(mam: Mam) -> None:
    """Codex names a hook by its place, so mam's comes after the user's."""
    path = mam.home / ".codex/config.toml"
    path.parent.mkdir()
    own = (
        '[[hooks.Stop]]\nhooks = [{type = "command", command = "mine"}]\n[hooks.state."a:stop:0:0"]\nenabled = false\n'
    )
    path.write_text(own, "utf-8")
    assert mam("plugin", "install", "--agent", "codex", "--yes").code == 0
    hooks = tomllib.loads(path.read_text("utf-8"))["hooks"]
    path.write_text(path.read_text("utf-8") + "\n[tui]\n", "utf-8")
    assert mam("plugin", "install", "--agent", "codex", "--dry-run").out == ""
    assert mam("plugin", "remove", "--agent", "codex", "--yes").code == 0

    assert hooks["Stop"][0]["hooks"][0]["command"] == "mine"
    assert hooks["Stop"][1]["hooks"][0]["command"].endswith("/hooks/report.sh codex")
    assert f"{path}:stop:1:0" in hooks["state"]
    assert f"{path}:session_start:0:0" in hooks["state"]
    assert tomllib.loads(path.read_text("utf-8")) == {**tomllib.loads(own), "tui": {}}


def test_for_a_project_no_hooks_are_installed(mam: Mam) -> None:
    """They would run on the machine of each person who clones it."""
    subprocess.run(["git", "init", "-q"], cwd=mam.here, check=True)
    assert mam("plugin", "install", "--agent", "claude-code", "--agent", "codex", "--project", "--yes").code == 0
    assert not [
        path for path in mam.here.rglob("*") if path.is_file() and "report.sh" in path.read_text("utf-8", "replace")
    ]
