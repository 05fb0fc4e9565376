"""OpenCode has plugins instead of hooks: mam passes its plugin to one session and to no other."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from mam.agents.hook_setup import add_hooks
from mam.errors import BadInput

SETTINGS = "OPENCODE_CONFIG_CONTENT"


def test_a_plugin_beside_the_session_is_named_in_its_environment(tmp_path: Path) -> None:
    root = tmp_path / "a session's root"
    root.mkdir()

    command, env = add_hooks("opencode", ("opencode", "--agent", "build"), str(root), "/")

    assert command == ("opencode", "--agent", "build")
    (address,) = json.loads(env[SETTINGS])["plugin"]
    assert address == (root / "opencode.js").as_uri()
    text = (root / "opencode.js").read_text("utf-8")
    assert f"const briefs = {json.dumps(str(root / 'briefs'))}\n" in text
    assert stat.S_IMODE(os.stat(root / "opencode.js").st_mode) == 0o600


def test_settings_that_are_there_already_are_not_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTINGS, '{"provider": {"own": {"options": {"apiKey": "secret"}}}}')

    with pytest.raises(BadInput) as refusal:
        add_hooks("opencode", ("opencode",), str(tmp_path), "/")

    assert "--no-hooks" in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []
