"""`mam config`: what it shows, what it writes, and what it refuses without touching the file."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mam as mam_package
from mam.config.settings import Config
from tests.cli.command import Mam

SECRET = "p4ss"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def file_of(mam: Mam) -> Path:
    return mam.home / "config/mam/config.toml"


def configure(mam: Mam, text: str) -> Path:
    file = file_of(mam)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def values(mam: Mam, **env: str) -> dict[str, tuple[object, str]]:
    mam.env.update(env)
    return {row["key"]: (row["value"], row["source"]) for row in mam("config", "list", "--json").json}


def test_every_value_names_its_source(mam: Mam) -> None:
    configure(mam, 'on_idle = "stop"\nlock_wait_seconds = 5\n[broker]\nhost = "localhost"\n')
    (mam.here / ".mam").mkdir(mode=0o700)
    (mam.here / ".mam/config.toml").write_text("require_attempt = true\nmax_depth = 7\n")

    found = values(mam, MAM_LOCK_WAIT_SECONDS="2")

    assert found["on_idle"] == ("stop", "user")
    assert found["lock_wait_seconds"] == (2, "environment")
    assert found["require_attempt"] == (True, "project")
    assert found["max_depth"] == (3, "untrusted")
    assert found["broker.host"] == ("localhost", "user")
    assert found["agent_prefix"] == ("MAM", "default")
    mam("trust")
    assert values(mam)["max_depth"] == (7, "project")


def test_a_broker_named_by_the_environment_takes_nothing_from_a_file(mam: Mam) -> None:
    configure(mam, '[broker]\nhost = "localhost"\nusername = "anna"\n')
    found = values(mam, MQTT_BROKER="127.0.0.1")
    assert found["broker.host"] == ("127.0.0.1", "environment")
    assert found["broker.username"] == (None, "default")


def test_list_prints_columns_in_a_pipe_and_a_table_on_a_terminal(mam: Mam) -> None:
    lines = mam("config", "list", MAM_ON_IDLE="stop").out.splitlines()
    assert 'on_idle\t"stop"\tenvironment\t"show"\tMAM_ON_IDLE' in lines
    shown = mam.on_terminal("config", "list", columns=80).out
    assert "VARIABLE" in shown
    assert all(len(_COLOUR.sub("", line)) <= 80 for line in shown.splitlines())
    assert " DEFAULT " not in _COLOUR.sub("", shown)
    assert "DEFAULT" in mam.on_terminal("config", "list", columns=110).out


def test_set_keeps_comments_and_order(mam: Mam) -> None:
    file = configure(mam, '# mine\nmax_depth = 2 # two\n\n[broker] # here\nhost = "localhost"\n')
    assert mam("config", "set", "on_idle", "stop").line == str(file)
    mam("config", "set", "broker.port", "1884")
    mam("config", "set", "max_depth", "4")
    mam("config", "set", "commands.my-agent.argv", '["my-agent", "{brief}"]')
    text = file.read_text()
    assert text.startswith("# mine\nmax_depth = 4 # two\n")
    assert '[broker] # here\nhost = "localhost"\nport = 1884\n' in text
    assert mam("config", "get", "on_idle").line == "stop"
    assert mam("config", "get", "commands.my-agent.argv").line == '["my-agent", "{brief}"]'
    mam("config", "unset", "commands.my-agent.argv")
    mam("config", "unset", "on_idle")
    assert "commands" not in file.read_text()
    mam("config", "unset", "on_idle").failed(1, "not set")


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode_and_place(mam: Mam) -> None:
    mam("config", "set", "on_idle", "stop")
    assert file_of(mam).stat().st_mode & 0o777 == 0o600
    kept = mam.home / "dotfiles.toml"
    os.rename(file_of(mam), kept)
    kept.chmod(0o644)
    file_of(mam).symlink_to(kept)
    mam("config", "set", "max_depth", "1")
    assert file_of(mam).is_symlink()
    assert kept.read_text() == 'on_idle = "stop"\nmax_depth = 1\n'
    assert kept.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("key", "value", "code", "word"),
    [
        ("on_idl", "stop", 2, "did you mean on_idle?"),
        ("broker.hots", "x", 2, "did you mean broker.host?"),
        ("broker", "x", 2, "is a table"),
        ("broker.password", SECRET, 2, "broker.password_file"),
        ("on_idle", "kill", 2, '"show" or "stop"'),
        ("max_depth", "many", 2, "whole number between 0 and 100"),
        ("lock_wait_seconds", "nan", 2, "between 0 and 3600"),
        ("require_attempt", "perhaps", 2, "true or false"),
        ("store", "relative", 2, "absolute"),
        ("store", f"postgresql://anna:{SECRET}@host/db", 1, "PGPASSWORD"),
        ("commands.x.env.API_KEY", SECRET, 1, "looks like a secret"),
        ("commands.x.argv", "my-agent", 2, "list"),
        ("commands.x.prompt", "stdin", 2, "argv must be"),
        ("commands.x.argvs", "[]", 2, "did you mean argv?"),
        ("commands.shell.argv", '["x"]', 2, "built in"),
        ("workdirs.relative", "/x", 2, "absolute"),
        ("prices.codex.input", "1.25", 2, "output is missing"),
        ("prices.codex.input", "-1", 2, "between 0 and 100000"),
        ("prices.codex.input", "inf", 2, "between 0 and 100000"),
        ("prices.codex.input", "true", 2, "must be a number"),
        ("prices.codex.imput", "1", 2, "did you mean input?"),
        ("prices.codex", "1.25", 2, "must be a table"),
        ("prices.codex", "{input = nan, output = 1}", 2, "between 0 and 100000"),
        ("prices.a b", "{input = 1, output = 1}", 2, "is not a name"),
        ("prices", "{}", 2, "is a table"),
        ("\x1b[31m", "x", 2, "not a setting"),
        ("", "x", 2, "not a setting"),
        ("on_idle.more", "x", 2, "not a setting"),
    ],
)
def test_a_rejected_change_changes_nothing(mam: Mam, key: str, value: str, code: int, word: str) -> None:
    file = configure(mam, "max_depth = 2\n")
    ran = mam("config", "set", key, value)
    ran.failed(code, word)
    assert SECRET not in ran.stderr
    assert file.read_text() == "max_depth = 2\n"
    assert [name for name in os.listdir(file.parent) if name != "config.toml"] == []


def test_secrets_in_a_file_are_masked(mam: Mam) -> None:
    configure(
        mam,
        f'store = "postgresql://anna:{SECRET}@host/db?password={SECRET}"\n'
        f'[commands.x]\nargv = ["x"]\nenv = {{API_KEY = "{SECRET}", LEVEL = "3"}}\n',
    )
    for words in (("list",), ("list", "--json"), ("get", "store"), ("get", "commands.x.env.API_KEY")):
        ran = mam("config", *words)
        assert ran.code == 0
        assert SECRET not in ran.out + ran.stderr
    assert mam("config", "get", "store").line == "postgresql://anna@host/db"
    assert '"LEVEL": "3"' in mam("config", "get", "commands.x.env").line


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://anna:{}@host/db?connect_timeout=3",
        "postgresql://anna@host/db?password={}",
        "postgresql://anna:x/{}@host/db",
        "postgresql://anna:x@{}@host/db",
        "postgresql://anna:x?{}@host/db",
        "postgresql://anna:{}?x@host/db",
        "postgresql://host/db?password=x@{}",
        "postgresql://host/db?user=anna&password={}",
    ],
)
def test_no_spelling_of_a_password_is_shown(mam: Mam, address: str) -> None:
    shown = mam("config", "get", "store", MAM_STORE=address.format(SECRET)).line
    assert SECRET not in shown
    assert shown in ("postgresql://anna@host/db", "postgresql://host/db", "postgresql://…")


def test_concurrent_writes_all_take_effect(mam: Mam) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: mam("config", "set", f"workdirs./there/{n}", f"/here/{n}"), range(6)))
    assert sorted(key for key in values(mam) if key.startswith("workdirs")) == [
        f"workdirs./there/{n}" for n in range(6)
    ]


def test_edit_accepts_only_a_valid_file(mam: Mam) -> None:
    file = configure(mam, "max_depth = 2\n")
    editor = mam.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s\\n" "$TEXT" >"$1"\n')
    editor.chmod(0o755)

    assert mam("config", "edit", EDITOR=str(editor), TEXT="max_depth = 5").line == str(file)
    assert file.read_text() == "max_depth = 5\n"

    mam("config", "edit", EDITOR=str(editor), TEXT="max_depht = 6").failed(2, "max_depth", "your text is in")
    assert file.read_text() == "max_depth = 5\n"
    (copy,) = (file.parent / name for name in os.listdir(file.parent) if name != "config.toml")
    assert copy.read_text() == "max_depht = 6\n"
    copy.unlink()

    mam("config", "edit", EDITOR="false").failed(1, "exited with 1")
    mam("config", "edit", EDITOR="/no/such/editor").failed(2, "EDITOR")
    assert os.listdir(file.parent) == ["config.toml"]


def test_a_project_s_file_has_to_be_trusted_again(mam: Mam) -> None:
    (mam.here / ".mam").mkdir(mode=0o700)
    ran = mam("config", "set", "--project", "default_agent", "codex")
    assert ran.line == str(mam.here / ".mam/config.toml")
    assert "mam trust" in ran.stderr
    assert values(mam)["default_agent"] == (None, "untrusted")
    mam("trust")
    assert values(mam)["default_agent"] == ("codex", "project")


def test_an_agent_changes_no_settings(mam: Mam) -> None:
    for words in (("set", "on_idle", "stop"), ("unset", "on_idle"), ("edit",)):
        mam("config", *words, MAM_SOCKET="/nowhere").failed(1, "a job cannot")
    assert not file_of(mam).exists()


def test_a_broken_file_is_named_and_not_overwritten(mam: Mam) -> None:
    file = configure(mam, "on_idle = \n")
    for words in (("list",), ("get", "on_idle"), ("set", "on_idle", "stop"), ("unset", "on_idle")):
        mam("config", *words).failed(2, str(file), "not valid TOML")
    assert file.read_text() == "on_idle = \n"
    assert mam("config", "path").line == str(file)


def test_the_prefix_of_sessions_is_a_setting(mam: Mam) -> None:
    mam("config", "set", "agent_prefix", "HOUMAO")
    assert values(mam)["agent_prefix"] == ("HOUMAO", "user")
    assert values(mam, MAM_AGENT_PREFIX="")["agent_prefix"] == ("", "environment")


@pytest.mark.parametrize("name", Config.field_names)
def test_every_setting_is_used(name: str) -> None:
    """The table parses and documents a setting that nothing reads, too."""
    source = Path(mam_package.__file__).parent
    used = re.compile(rf"config(\(.*\))?\.{name}\b")
    files = (file for file in source.rglob("*.py") if source / "config" not in file.parents)
    assert any(used.search(file.read_text("utf-8")) for file in files)
