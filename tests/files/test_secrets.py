"""The file of secrets: a secret costs one line, and a failed write loses no stored secret."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mam.stores.secrets import Secrets


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


def test_one_more_is_one_line(file: Path) -> None:
    kept = Secrets(str(file))
    for number in range(100):
        kept.keep(f"job{number}", {"auth_token": f"token {number}"})
    size = file.stat().st_size
    kept.keep("another", {"auth_token": "t"})
    assert file.stat().st_size - size < 50
    assert file.stat().st_mode & 0o777 == 0o600
    assert Secrets(str(file)).of("job42") == {"auth_token": "token 42"}
    kept.keep("job42", {"password": "p"})
    assert Secrets(str(file)).of("job42") == {"auth_token": "token 42", "password": "p"}
    assert kept.of("nobody") == {}


def test_a_file_of_an_older_mam(file: Path) -> None:
    """One object, and no newline behind it."""
    file.write_text('{"abc":{"auth_token":"old"}}')
    kept = Secrets(str(file))
    assert kept.of("abc") == {"auth_token": "old"}
    kept.keep("def", {"auth_token": "new"})
    assert (kept.of("abc"), kept.of("def")) == ({"auth_token": "old"}, {"auth_token": "new"})


def test_secrets_of_other_processes_are_read(file: Path) -> None:
    mine = Secrets(str(file))
    mine.keep("a", {"auth_token": "1"})
    assert mine.of("b") == {}
    with file.open("a") as other:
        other.write('{"b":{"auth_token":"2"}}\n')
    assert mine.of("b") == {"auth_token": "2"}
    whole = file.read_text().replace('"1"', '"3"')
    (file.parent / "edited").write_text(whole)
    (file.parent / "edited").rename(file)
    assert mine.of("a") == {"auth_token": "3"}
    file.unlink()
    assert mine.of("a") == {}


@pytest.mark.parametrize("broken", [b'{"torn":{"auth', b'{"a":{"auth_token":"1"}}\nnonsense\n', b"[1]\n", b"\xff\n"])
def test_an_unreadable_secret_is_set_aside_and_the_rest_remains(file: Path, broken: bytes) -> None:
    file.write_bytes(b'{"whole":{"auth_token":"0"}}\n' + broken)
    kept = Secrets(str(file))
    assert kept.of("whole") == {"auth_token": "0"}
    kept.keep("new", {"auth_token": "n"})
    assert Path(f"{file}.damaged").read_bytes().endswith(broken)
    assert (kept.of("whole"), kept.of("new")) == ({"auth_token": "0"}, {"auth_token": "n"})
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_a_secret_that_could_not_be_synced_is_not_stored(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Secrets(str(file))
    kept.keep("a", {"auth_token": "1"})

    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input"):
            kept.keep("b", {"auth_token": "2"})
    assert kept.of("b") == {}
    kept.keep("b", {"auth_token": "3"})
    assert (kept.of("a"), kept.of("b")) == ({"auth_token": "1"}, {"auth_token": "3"})
    assert os.listdir(file.parent) == ["secrets"]
