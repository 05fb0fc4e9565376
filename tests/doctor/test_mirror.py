"""A mirror of the inbox that differs from the registry is found and repaired."""

from __future__ import annotations

from tests.doctor.doctor_command import Doctor


def test_a_mirror_that_differs_is_reported(doctor: Doctor) -> None:
    root = doctor.here / "drop"
    settings = doctor.home / "settings.toml"
    settings.write_text(
        f'[inbox]\nroot = "{root}"\nagent = "shell"\nmode = "single-owner"\nowner = "acme"\n'
        "settle_seconds = 0.0\nlinger_seconds = 0.0\n"
    )
    doctor.env["MAM_CONFIG"] = str(settings)
    folder = root / "inbox" / "shop" / "main"
    folder.mkdir(parents=True)
    (folder / "x.prompt.md").write_text("echo hello")
    once = doctor("inbox", "once")
    (state,) = (root / ".queue" / "jobs").glob("*/state")
    said = state.read_text()
    doctor.run().one("mirror", "fine")
    state.write_text("queued\n")
    found = doctor.run().one("mirror", "wrong")
    assert state.parent.name in found["what"], once
    doctor.run("--fix").one("mirror", "mended")
    assert state.read_text() == said
    doctor.run().one("mirror", "fine")
