"""The inbox's mirror that drifted from the registry is found, and mended."""

from __future__ import annotations

from tests.doctor.ward import Ward


def test_a_mirror_that_says_something_else(ward: Ward) -> None:
    root = ward.here / "drop"
    settings = ward.home / "settings.toml"
    settings.write_text(
        f'[inbox]\nroot = "{root}"\nagent = "shell"\nmode = "single-owner"\nowner = "acme"\n'
        "settle_seconds = 0.0\nlinger_seconds = 0.0\n"
    )
    ward.env["MAM_CONFIG"] = str(settings)
    folder = root / "inbox" / "shop" / "main"
    folder.mkdir(parents=True)
    (folder / "x.prompt.md").write_text("echo hello")
    once = ward("inbox", "once")
    (state,) = (root / ".queue" / "jobs").glob("*/state")
    said = state.read_text()
    ward.examined().of("mirror", "fine")
    state.write_text("queued\n")
    found = ward.examined().of("mirror", "wrong")
    assert state.parent.name in found["what"], once
    ward.examined("--fix").of("mirror", "mended")
    assert state.read_text() == said
    ward.examined().of("mirror", "fine")
