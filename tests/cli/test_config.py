"""The settings of a user: their effect, what is rejected, and the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Mam


def configure(mam: Mam, text: str) -> Path:
    file = mam.home / "config/mam/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_default_agent_and_require_attempt_take_effect(mam: Mam) -> None:
    configure(mam, 'default_agent = "codex"\nrequire_attempt = true\nlock_wait_seconds = 3\n')
    job = mam("register", "x").line
    assert mam.record(job)["agent"] == "codex"
    mam("pick", "-s", "codex")
    mam("complete", job).failed(1, "--attempt")
    assert mam("complete", job, MAM_REQUIRE_ATTEMPT="0").line == "completed"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('defualt_agent = "x"', "default_agent"),
        ("[broker]\nhosts = 'x'", "'hosts'"),
        ("require_attempt = 1", "true or false"),
        ("default_agent = 1", "a text"),
        ("lock_wait_seconds = true", "a number"),
        ("lock_wait_seconds = -1", "between"),
        ("lock_wait_seconds = nan", "between"),
        ("store = 'relative'", "absolute"),
        ("store = ", "not valid TOML"),
        ("\x00", "not valid TOML"),
    ],
)
def test_an_invalid_file_is_refused_by_name(mam: Mam, text: str, word: str) -> None:
    file = configure(mam, text)
    mam("list").failed(2, str(file), word)


def test_another_file_may_be_named_and_must_be_there(mam: Mam) -> None:
    mam("init")
    other = mam.here / "other.toml"
    mam("list", MAM_CONFIG=str(other)).failed(2, "MAM_CONFIG")
    other.write_text('default_agent = "human"\n')
    job = mam("register", "x", MAM_CONFIG="other.toml").line
    assert mam.record(job)["agent"] == "human"


def test_a_projects_file_does_not_choose_the_agent_until_it_is_trusted(mam: Mam) -> None:
    mam("init")
    (mam.here / ".mam/config.toml").write_text('default_agent = "evil"\n')
    refused = mam("register", "x")
    assert refused.code == 2
    assert "mam trust" in refused.stderr
    assert "--agent" in refused.stderr

    assert mam("trust").code == 0
    assert mam.record(mam("register", "x").line)["agent"] == "evil"


@pytest.mark.parametrize(
    ("name", "value"),
    [("MAM_REQUIRE_ATTEMPT", "maybe"), ("MAM_LOCK_WAIT_SECONDS", "long"), ("MAM_LOCK_WAIT_SECONDS", "nan")],
)
def test_an_invalid_variable_is_an_error(mam: Mam, name: str, value: str) -> None:
    mam("init")
    environment: dict[str, Any] = {name: value}
    mam("list", **environment).failed(2, name)


def test_parsed_settings_are_cached_until_the_file_changes(mam: Mam) -> None:
    configure(mam, 'default_agent = "codex"\n')
    assert mam.record(mam("register", "x").line)["agent"] == "codex"
    cache = mam.home / "cache/mam/config.json"
    assert cache.stat().st_mode & 0o777 == 0o600
    assert cache.parent.stat().st_mode & 0o777 == 0o700

    kept = json.loads(cache.read_bytes())
    kept["values"]["default_agent"] = "from the cache"
    cache.write_text(json.dumps(kept))
    assert mam.record(mam("register", "x").line)["agent"] == "from the cache"

    configure(mam, 'default_agent = "human"\n')
    assert mam.record(mam("register", "x").line)["agent"] == "human"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": 1}', '{"key": [], "values": {"evil": 1}}', "\x00"])
def test_a_broken_cache_is_no_error(mam: Mam, content: str) -> None:
    configure(mam, 'default_agent = "codex"\n')
    cache = mam.home / "cache/mam/config.json"
    cache.parent.mkdir(parents=True)
    cache.write_text(content)
    assert mam.record(mam("register", "x").line)["agent"] == "codex"


def test_a_cache_that_cannot_be_written_is_no_error(mam: Mam) -> None:
    configure(mam, 'default_agent = "codex"\n')
    (mam.home / "cache").touch()
    mam("init")
    ran = mam("register", "x")
    assert len(ran.line) == 32
    assert ran.stderr == ""
