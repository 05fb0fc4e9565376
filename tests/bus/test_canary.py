"""A secret in any input never appears in what mam sends, logs or prints."""

from __future__ import annotations

import os
from pathlib import Path

from tests.bus.following import ended, local_store
from tests.bus.test_bad_brokers import Secure, secure
from tests.cli.command import Mam

__all__ = ["secure"]

CANARY = "canary-7f3e91b2"


def test_a_secret_is_in_nothing_that_leaves(mam: Mam, secure: Secure, tmp_path: Path) -> None:
    """The prompt, the job's token, the broker's password, absolute paths, an agent's hook input, well-known keys."""
    password = secure.passwords["publisher"]
    mam.env.update(secure.env("publisher"))
    received = tmp_path / "heard"
    reader = secure.reader()
    job = mam.register(f"the prompt holds {CANARY}", "--sign")
    token = local_store(mam).secrets(job)["auth_token"]
    key, github = f"sk-ant-{CANARY}-abcdefghijklmnop", "ghp_" + "a1B2" * 9

    said = [
        mam("publish", job, "started", "--detail", f"token {token} and password {password}"),
        mam("publish", job, "progress", "--detail", f"key {key} and {github} at /home/{CANARY}/{CANARY}/file"),
        mam("publish", job, "progress", "--data", f'{{"{token}": ["{password}"]}}'),
        mam("hook", "claude-code", MAM_JOB_ID=job, stdin=_hook_input()),
        mam(
            "ask",
            f"May it print {CANARY}?",
            "--tool",
            f"Bash {CANARY}",
            "--input",
            f'{{"command": "echo {CANARY}"}}',
            "--job",
            job,
            "--attempt",
            "1",
        ),
        mam("answer", job, "deny", "--reason", f"not {CANARY}"),
        mam("relay", "--status"),
        mam("publish", job, "progress", MQTT_PASSWORD=f"wrong-{CANARY}"),
        mam("publish", job, "progress", MQTT_BROKER=f"user:{CANARY}@127.0.0.1"),
        mam("publish", job, "completed"),
        mam("subscribe", job, "--replay"),
        mam("subscribe", job, "--json", MQTT_PASSWORD=f"wrong-{CANARY}"),
    ]
    received.write_text("\n".join(reader.take(8)))

    printed = "".join(ran.out + ran.stderr for ran in said)
    logged = _all_text(mam.here / ".mam" / "delegate_job_logs", leave_out="meta.json")
    beside = _all_text(mam.here / ".mam" / "jobs" / ".store", only="relay-")
    for secret in (token, password, key, github):
        assert secret not in received.read_text() + beside
    for secret in (key, github, f"/home/{CANARY}"):
        assert secret not in printed + logged
    assert CANARY not in received.read_text() + beside
    assert f"wrong-{CANARY}" not in printed + logged
    assert f"user:{CANARY}" not in printed + logged
    assert received.read_text().count("hmac_sig") == 8


def _hook_input() -> bytes:
    return (
        f'{{"hook_event_name": "PermissionRequest", "tool_name": "Bash", "cwd": "/{CANARY}",'
        f' "tool_input": {{"command": "export KEY={CANARY}"}}}}'
    ).encode()


def _all_text(folder: Path, only: str = "", leave_out: str = "-") -> str:
    files = [file for file in folder.rglob("*") if file.is_file() and file.name.startswith(only)]
    return "".join(file.read_text(errors="replace") for file in files if file.name != leave_out)


def test_no_process_has_a_password_in_its_arguments(mam: Mam, secure: Secure) -> None:
    mam.env.update(secure.env("publisher"))
    relay = mam.start("relay")
    words = Path(f"/proc/{relay.pid}/cmdline")
    if words.exists():
        assert os.fsencode(secure.passwords["publisher"]) not in words.read_bytes()
    relay.terminate()

    assert secure.passwords["publisher"] not in ended(relay)[2]


def test_a_password_file_must_be_private(mam: Mam, secure: Secure, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(secure.passwords["publisher"] + "\n")
    config = mam.home / "config" / "mam"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        f'[broker]\nhost = "127.0.0.1"\nport = {secure.broker.port}\ntls = true\nca_certs = "{secure.ca}"\n'
        f'username = "publisher"\npassword_file = "{file}"\n'
    )
    job = mam.register()
    file.chmod(0o644)

    assert "chmod 600" in mam("publish", job, "progress").stderr
    file.chmod(0o600)
    assert mam("publish", job, "progress").stderr == ""
    assert secure.passwords["publisher"] not in _all_text(mam.home / "cache")
