"""A live record that points at the wrong session: each case has its own error, and nothing is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mam.agents import errors
from mam.agents.control import check_target
from mam.agents.record_parser import record_from
from mam.errors import MamError
from tests.agents.sessions import Sessions
from tests.cli.command import Mam

Change = Callable[[dict[str, Any], dict[str, Any]], None]
"""Makes the record or the manifest wrong."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """One session for all tests: each reads its record, and none changes it."""
    home = tmp_path_factory.mktemp("home")
    with TemporaryDirectory(prefix="mam-t-") as folder:
        sessions = Sessions(Mam(home, home), Path(folder))
        sessions.start("gpu", "cat")
        yield sessions
        sessions.close()


def _set(where: str, path: str, value: Any) -> Change:
    def change(record: dict[str, Any], manifest: dict[str, Any]) -> None:
        target = record if where == "record" else manifest
        *groups, field = path.split(".")
        for group in groups:
            target = target[group]
        target[field] = value

    return change


CASES: list[tuple[Change, type[MamError], int, str]] = [
    (_set("record", "runtime.manifest_path", "relative/manifest.json"), errors.ManifestNotAbsolute, 1, "absolute"),
    (_set("record", "runtime.manifest_path", "/nowhere/manifest.json"), errors.ManifestMissing, 1, "/nowhere"),
    (_set("record", "runtime.manifest_path", "/etc/passwd/x"), errors.ManifestMissing, 1, "/etc/passwd"),
    (_set("record", "runtime.manifest_path", "/proc/self/mem"), errors.ManifestUnreadable, 1, "/proc/self/mem"),
    (_set("record", "runtime.manifest_path", "/dev/null"), errors.ManifestUnreadable, 1, "/dev/null"),
    (_set("manifest", "backend", "cao_rest"), errors.BackendNotTmux, 1, "cao_rest"),
    (_set("manifest", "backend", None), errors.ManifestUnreadable, 1, "backend"),
    (_set("manifest", "command", "cat"), errors.ManifestUnreadable, 1, "command"),
    (_set("manifest", "tmux_session_name", "gpu-2"), errors.SessionDiffers, 1, "gpu-2"),
    (_set("manifest", "agent_name", "MAM-other"), errors.NameDiffers, 1, "MAM-other"),
    (_set("manifest", "agent_name", "../x"), errors.NameDiffers, 1, "../x"),
    (_set("manifest", "generation_id", "old"), errors.GenerationDiffers, 4, "old"),
    (_set("record", "runtime.agent_def_dir", "relative"), errors.DefinitionNotAbsolute, 1, "--agent-def-dir"),
    (_set("record", "runtime.agent_def_dir", "/nowhere"), errors.DefinitionMissing, 1, "--agent-def-dir"),
    (_set("manifest", "agent_def_dir", "/nowhere"), errors.DefinitionMissing, 1, "/nowhere"),
    (_set("record", "mam.host", "another-host"), errors.OnAnotherHost, 1, "another-host"),
    (_set("record", "mam.socket", "/nowhere/socket"), errors.ServerGone, 1, "/nowhere/socket"),
    (_set("record", "mam.server.start_time", 1), errors.ServerReplaced, 1, "is not the one of gpu"),
    (_set("record", "mam.server.boot_id", "another-boot"), errors.ServerReplaced, 1, "is not the one of gpu"),
    (_set("record", "mam.pane", "%99"), errors.SessionReplaced, 1, "is another one"),
    (_set("record", "mam.session_id", "$99"), errors.SessionReplaced, 1, "is another one"),
]


def test_as_it_is_it_passes(world: Sessions) -> None:
    target = check_target(record_from(world.record("gpu")))
    assert (target.name, target.pane.session) == ("gpu", "gpu")


@pytest.mark.parametrize(("change", "kind", "code", "word"), CASES)
def test_each_failed_check_has_its_own_message(
    world: Sessions, tmp_path: Path, change: Change, kind: type[MamError], code: int, word: str
) -> None:
    record, manifest_file = world.record("gpu"), tmp_path / "manifest.json"
    manifest = json.loads(Path(record["runtime"]["manifest_path"]).read_bytes())
    record["runtime"]["manifest_path"] = str(manifest_file)
    change(record, manifest)
    manifest_file.write_text(json.dumps(manifest), encoding="utf-8")
    manifest_file.chmod(0o600)

    with pytest.raises(kind, match=r"nothing was done|--agent-def-dir|gone|cannot be") as caught:
        check_target(record_from(record))

    assert caught.value.exit_code == code
    assert word in str(caught.value)
    assert world.names() == {"gpu"}


def test_sentences_are_all_different() -> None:
    kinds = {kind for _, kind, _, _ in CASES}
    assert len({kind.__doc__ for kind in kinds}) == len(kinds)


def test_a_definition_given_now_wins(world: Sessions, tmp_path: Path) -> None:
    record = world.record("gpu")
    record["runtime"]["agent_def_dir"] = "/nowhere"
    assert check_target(record_from(record), str(tmp_path)).agent_def_dir == str(tmp_path)
    with pytest.raises(errors.DefinitionNotAbsolute):
        check_target(record_from(record), "relative")


def test_a_manifest_that_is_a_link_or_writable_by_others_is_not_read(world: Sessions, tmp_path: Path) -> None:
    record = world.record("gpu")
    link = tmp_path / "link.json"
    link.symlink_to(record["runtime"]["manifest_path"])
    record["runtime"]["manifest_path"] = str(link)
    with pytest.raises(errors.ManifestUnreadable):
        check_target(record_from(record))
    everybodys = tmp_path / "manifest.json"
    everybodys.write_bytes(link.read_bytes())
    everybodys.chmod(0o666)
    record["runtime"]["manifest_path"] = str(everybodys)
    with pytest.raises(errors.ManifestUnreadable, match="other users"):
        check_target(record_from(record))


def test_without_a_socket_it_is_unknown(world: Sessions, tmp_path: Path) -> None:
    record = world.record("gpu")
    manifest = json.loads(Path(record["runtime"]["manifest_path"]).read_bytes())
    del record["mam"], manifest["tmux_socket"]
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest), encoding="utf-8")
    file.chmod(0o600)
    record["runtime"]["manifest_path"] = str(file)
    with pytest.raises(errors.ServerUnknown) as caught:
        check_target(record_from(record))
    assert caught.value.exit_code == 9
