"""Settings of user and project: which wins, what is rejected, and what an untrusted project may not set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mam.config.settings import Config, load_config
from mam.errors import BadConfig
from tests.cli.command import Mam
from tests.work.commands import mam

__all__ = ["mam"]

COMMAND = '[commands.my-agent]\nargv = ["my-agent", "{prompt}"]\n'


def project(mam: Mam, text: str) -> Path:
    file = mam.here / ".mam/config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def user(mam: Mam, text: str) -> Path:
    file = mam.home / "config/mam/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def inside(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> Mam:
    """Changes into the project and sets this home directory."""
    for name in ("MAM_CONFIG", "MAM_STORE", "MAM_DEFAULT_AGENT", "MAM_ON_IDLE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, mam.env[name])
    monkeypatch.chdir(mam.here)
    monkeypatch.setattr("mam.config.project._warned", set())
    return mam


def test_a_missing_file_gives_the_defaults(inside: Mam) -> None:
    config = load_config()
    assert config == Config()
    assert (config.max_depth, config.on_idle, config.workdirs, config.commands) == (3, "show", {}, {})


def test_the_keys_of_the_users_file_are_read(inside: Mam) -> None:
    user(inside, 'max_depth = 5\non_idle = "stop"\n[workdirs]\n"/far" = "~/near"\n' + COMMAND)
    for _ in range(2):  # parsed, then from the cache
        config = load_config()
        assert (config.max_depth, config.on_idle, config.workdirs) == (5, "stop", {"/far": "~/near"})
        assert config.commands == {"my-agent": {"argv": ["my-agent", "{prompt}"]}}


def test_flag_environment_user_project_default_in_this_order(mam: Mam) -> None:
    def agent(*words: str, **env: Any) -> Any:
        return mam.record(mam("register", "x", *words, **env).line)["agent"]

    mam("init")
    project(mam, 'default_agent = "of-the-project"\n')
    mam("trust")
    assert agent() == "of-the-project"
    user(mam, 'default_agent = "of-the-user"\n')
    assert agent() == "of-the-user"
    assert agent(MAM_DEFAULT_AGENT="of-the-environment") == "of-the-environment"
    assert agent("--agent", "of-the-flag", MAM_DEFAULT_AGENT="of-the-environment") == "of-the-flag"


def test_tables_are_joined_name_by_name_and_the_users_win(inside: Mam) -> None:
    project(inside, '[workdirs]\n"/a" = "/project"\n"/b" = "/project"\n' + COMMAND)
    user(inside, '[workdirs]\n"/a" = "/user"\n[commands.my-agent]\nargv = ["mine"]\n[commands.other]\nargv = ["o"]\n')
    inside("trust")
    config = load_config()
    assert config.workdirs == {"/a": "/user", "/b": "/project"}
    assert config.commands == {"my-agent": {"argv": ["mine"]}, "other": {"argv": ["o"]}}


def test_the_environment_sets_on_idle(inside: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    user(inside, 'on_idle = "show"\n')
    monkeypatch.setenv("MAM_ON_IDLE", "stop")
    assert load_config().on_idle == "stop"
    inside("list", MAM_ON_IDLE="maybe").failed(2, "MAM_ON_IDLE")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('store = "/tmp/evil"', "store"),
        ('default_agent = "shell"', "default_agent"),
        ("max_depth = 99", "max_depth"),
        ('[workdirs]\n"/" = "/tmp"', "workdirs"),
        (COMMAND, "commands"),
        ("[prices.codex]\ninput = 0\noutput = 0", "prices"),
    ],
)
def test_an_untrusted_project_names_nothing(
    inside: Mam, capsys: pytest.CaptureFixture[str], text: str, word: str
) -> None:
    file = project(inside, f'on_idle = "stop"\nlock_wait_seconds = 1\nrequire_attempt = true\n{text}\n')
    config = load_config()
    assert load_config() == config
    assert config == Config(on_idle="stop", lock_wait_seconds=1, require_attempt=True)
    err = capsys.readouterr().err
    assert err.count("\n") == 1, "once in a process"
    for part in ("mam: ", str(file), word, "`mam trust`"):
        assert part in err


def test_harmless_settings_need_no_trust(inside: Mam, capsys: pytest.CaptureFixture[str]) -> None:
    project(inside, 'on_idle = "stop"\n')
    assert load_config().on_idle == "stop"
    assert capsys.readouterr().err == ""


def test_the_line_about_trust_cannot_steer_the_terminal(mam: Mam) -> None:
    odd = mam.here / "a\x1b[31m\nb"
    (odd / ".mam").mkdir(parents=True)
    (odd / ".mam/config.toml").write_text('default_agent = "x"\n')
    err = mam("where", cwd=odd).stderr
    assert "\x1b" not in err
    assert "mam trust" in err.splitlines()[0]


def test_the_nearest_file_upward_counts_alone(inside: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    project(inside, 'on_idle = "stop"\nrequire_attempt = true\n')
    below = inside.here / "a/b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert load_config().on_idle == "stop"
    (inside.here / "a/.mam").mkdir()
    (inside.here / "a/.mam/config.toml").write_text("require_attempt = true\n")
    assert load_config() == Config(require_attempt=True)


def test_a_store_without_settings_does_not_end_the_search(inside: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    project(inside, 'on_idle = "stop"\n')
    (inside.here / "a/.mam/jobs").mkdir(parents=True)
    monkeypatch.chdir(inside.here / "a")
    assert load_config().on_idle == "stop"


def refused(inside: Mam, text: str) -> str:
    user(inside, text)
    with pytest.raises(BadConfig) as error:
        load_config()
    assert str(inside.home / "config/mam/config.toml") in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("max_depht = 3", "did you mean max_depth?"),
        ("max_depth = 1.5", "whole number"),
        ("max_depth = true", "whole number"),
        ("max_depth = -1", "between 0 and 100"),
        ('on_idle = "kill"', '"show" or "stop"'),
        ("on_idle = 1", "a text"),
        ("workdirs = 1", "a table"),
        ('[workdirs]\nrelative = "/x"', "absolute"),
        ('[workdirs]\n"/a/../b" = "/x"', "absolute"),
        ('[workdirs]\n"/a" = "relative"', "absolute"),
        ('[workdirs]\n"/a" = 1', "absolute"),
        ("commands = []", "must be a table"),
        ("[commands]\nx = 1", "commands.x must be a table"),
        ('[commands.shell]\nargv = ["x"]', "built in"),
        ('[commands."a b"]\nargv = ["x"]', "not a name"),
        ('[commands."$(x)"]\nargv = ["x"]', "not a name"),
        ('[commands.x]\nargs = ["x"]', "did you mean argv?"),
        ("[commands.x]", "argv must be a list"),
        ('[commands.x]\nargv = "x y"', "argv must be a list"),
        ("[commands.x]\nargv = []", "argv must be a list"),
        ('[commands.x]\nargv = ["x", 1]', "argv must be a list"),
        ('[commands.x]\nargv = ["./x"]', "absolute path"),
        ('[commands.x]\nargv = ["bin/x"]', "absolute path"),
        ('[commands.x]\nargv = [""]', "absolute path"),
        ('[commands.x]\nargv = ["{prompt}"]', "absolute path"),
        ('[commands.x]\nargv = ["x", "a\\u0000b"]', "NUL"),
        ('[commands.x]\nargv = ["x"]\nprompt = "socket"', "argument, stdin, file"),
        ('[commands.x]\nargv = ["x"]\nprompt = ["stdin"]', "argument, stdin, file"),
        ('[commands.x]\nargv = ["x"]\nsuccess = "maybe"', "exit, said, artifacts"),
        ('[commands.x]\nargv = ["x"]\nretry_codes = [0]', "exit codes"),
        ('[commands.x]\nargv = ["x"]\nretry_codes = [true]', "exit codes"),
        ('[commands.x]\nargv = ["x"]\nretry_codes = 75', "exit codes"),
        ('[commands.x]\nargv = ["x"]\nenv = {A = 1}', "table of texts"),
        ('[commands.x]\nargv = ["x"]\nenv = {"A=B" = "c"}', "cannot be a variable"),
        ('[commands.x]\nargv = ["x"]\nenv = {MAM_STORE = "c"}', "for mam itself"),
        ('[commands.x]\nargv = ["x", "{brief}"]\nprompt = "stdin"', "comes by stdin"),
        (f"x = {'[' * 5000}", "not valid TOML"),
        ("[brokers]\nhost = 'x'", "'brokers' is not a setting"),
    ],
)
def test_invalid_settings_are_refused_by_name(inside: Mam, text: str, word: str) -> None:
    assert word in refused(inside, text)


def test_a_projects_mistakes_are_errors_too(mam: Mam) -> None:
    mam("init")
    file = project(mam, "max_depht = 3\n")
    mam("list").failed(2, str(file), "max_depth")
    file.write_bytes(b"\xff")
    mam("list").failed(2, str(file), "not valid TOML")
    file.write_text("#" * 2_000_000)
    mam("list").failed(2, str(file), "bytes")


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_a_settings_path_that_is_no_regular_file_is_ignored(mam: Mam, kind: str) -> None:
    import os

    mam("init")
    file = mam.here / ".mam/config.toml"
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "link":
            file.symlink_to("/etc/hostname")
    assert mam("list").code == 0


def test_settings_of_a_project_are_cached_by_content(mam: Mam) -> None:
    mam("init")
    project(mam, "lock_wait_seconds = 2\n")
    mam("list")
    cache = mam.home / "cache/mam/project.json"
    assert cache.stat().st_mode & 0o777 == 0o600
    cache.write_text("{")
    assert mam("list").code == 0
