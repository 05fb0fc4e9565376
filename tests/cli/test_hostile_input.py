"""Input that attacks a parser, given to the real command: one line, the right exit code, other jobs unharmed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam

VALUES = {
    "brackets": "[" * 100_000,
    "closed brackets": "[" * 30_000 + "]" * 30_000,
    "700 levels": '{"a":' * 700 + "1" + "}" * 700,
    "quotes": '"' * 30_001,
    "NaN": "NaN",
    "endless": "1e999",
    "a long number": "9" * 5_000,
}
DIFFERENT = ["closed brackets", "NaN", "a long number"]
"""One for each limit of the parser. Events get all values; these show that the other inputs pass the same parser."""
TOML = {
    "brackets": "a = " + "[" * 100_000,
    "lists": "a = " + "[" * 300 + "]" * 300,
    "tables": "a = " + "{a=" * 200 + "1" + "}" * 200,
    "a dotted key": "a" + ".a" * 2_000 + " = 1",
    "a long number": "max_depth = " + "9" * 5_000,
    "NUL": 'a = "\0"',
    "half a surrogate pair": r'a = "\ud800"',
    "a mark": "\ufeffa = 1",
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_hostile_record_file_disturbs_no_verb(mam: Mam, name: str) -> None:
    """The registry goes on with what it has, and no verb but `adopt` minds the file."""
    mam("init")
    bad, good = (mam("register", prompt, "--agent", "shell", "-s", "l").line for prompt in ("bad", "good"))
    file = mam.here / ".mam" / "jobs" / f"{bad}.json"
    record = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**record, "odd": "HERE"}).replace('"HERE"', VALUES[name]))
    adopted = mam("adopt", bad)
    assert (adopted.code, adopted.out) == (1, f"{bad}\tunreadable\tis not whole, valid JSON\n")
    assert [json.loads(mam("get", job, "--json").out)["prompt"] for job in (bad, good)] == ["bad", "good"]
    assert [mam("pick", "-s", "l").line for _ in range(2)] == [bad, good]


@pytest.mark.parametrize("name", VALUES)
def test_hostile_data_of_an_event_is_rejected(mam: Mam, name: str) -> None:
    mam("init")
    job = mam("register", "do", "--agent", "shell").line
    mam("publish", job, "progress", "--data", f'{{"a": {VALUES[name]}}}').failed(2, "data")
    assert mam("publish", job, "progress", "--data", '{"a": 1}').code == 0


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_hook_accepts_any_input_silently(mam: Mam, name: str) -> None:
    mam("init")
    job = mam("register", "do", "--agent", "shell").line
    given = f'{{"hook_event_name": "Stop", "x": {VALUES[name]}}}'.encode()
    ran = mam("hook", "claude-code", stdin=given, MAM_JOB_ID=job)
    assert (ran.code, ran.out, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("name", TOML)
def test_a_hostile_file_of_settings_is_rejected(mam: Mam, name: str) -> None:
    mam("init")
    file = mam.home / "config" / "mam" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TOML[name])
    for words in (("list",), ("config", "set", "default_agent", "shell")):
        ran = mam(*words)
        ran.failed(2, "config.toml: not valid TOML: ")
        assert len(ran.stderr) < 500
    assert file.read_text() == TOML[name]
    file.unlink()
    assert mam("list").code == 0


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_hostile_value_of_a_setting_is_rejected(mam: Mam, name: str) -> None:
    mam("config", "set", "prices.x", f"{{input = {VALUES[name]}}}").failed(2, "prices.x")


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_list_of_trusted_files(mam: Mam, tmp_path: Path, name: str) -> None:
    """One that cannot be read trusts nothing, and stops nothing."""
    mam("init")
    (mam.here / ".mam" / "config.toml").write_text('default_agent = "shell"\n')
    state = tmp_path / "state" / "mam"
    state.mkdir(parents=True, mode=0o700)
    (state / "trusted.json").write_text(f'{{"files": {VALUES[name]}}}')
    os.chmod(state / "trusted.json", 0o600)
    ran = mam("list", XDG_STATE_HOME=str(tmp_path / "state"))
    assert ran.code == 0, ran.stderr
    assert "bug" not in ran.stderr
