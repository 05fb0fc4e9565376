"""A directory tree with hostile content: no exception, nothing outside is touched, and publishing still works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mam.agents.acts import publish, refresh
from mam.agents.cleanup import clean_up
from mam.agents.errors import BadName
from mam.agents.files_directory import FilesDirectory
from mam.agents.lookup import by_any, by_id, by_name, by_session
from mam.agents.names import default_agent_id
from mam.errors import StoreUnavailable
from mam.testing.clock import FakeClock
from tests.agents.records import a_record, as_bytes, version_3

NOBODY = 65534
STRANGER = 12345
ROOT = Path(__file__).resolve().parents[2]

Planting = Callable[[Path, Path], None]
"""Creates an entry (a path that does not exist yet), given the outside directory."""


def _entry(entry: Path, mode: int = 0o700) -> Path:
    entry.mkdir()
    entry.chmod(mode)
    return entry / "record.json"


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def link_to_outside(entry: Path, outside: Path) -> None:
    entry.symlink_to(outside)


def dangling_link(entry: Path, outside: Path) -> None:
    entry.symlink_to(outside / "nowhere")


def record_is_link(entry: Path, outside: Path) -> None:
    _entry(entry).symlink_to(outside / "record.json")


def record_is_hard_link(entry: Path, outside: Path) -> None:
    os.link(outside / "record.json", _entry(entry))


def record_is_directory(entry: Path, outside: Path) -> None:
    record = _entry(entry)
    record.mkdir()
    _file(record / "inside", b"x")
    (record / "way out").symlink_to(outside)


def record_is_fifo(entry: Path, outside: Path) -> None:
    os.mkfifo(_entry(entry), 0o600)


def record_is_unreadable(entry: Path, outside: Path) -> None:
    _file(_entry(entry), b"{}").chmod(0)


def record_is_half_written(entry: Path, outside: Path) -> None:
    _file(_entry(entry), as_bytes(version_3())[:100])


def record_of_another_id(entry: Path, outside: Path) -> None:
    _file(_entry(entry), as_bytes(version_3("somebody-else")))


def record_for_everybody(entry: Path, outside: Path) -> None:
    _file(_entry(entry), as_bytes(version_3())).chmod(0o666)


def entry_for_everybody(entry: Path, outside: Path) -> None:
    _file(_entry(entry, 0o777), as_bytes(version_3()))


def entry_is_a_file(entry: Path, outside: Path) -> None:
    _file(entry, b"text")


def entry_is_empty(entry: Path, outside: Path) -> None:
    _entry(entry)


def huge_record(entry: Path, outside: Path) -> None:
    _file(_entry(entry), b" " * (2 * 1024 * 1024))


def nothing_but_bytes(entry: Path, outside: Path) -> None:
    _file(_entry(entry), bytes(range(256)))


PLANTINGS: list[Planting] = [
    link_to_outside, dangling_link, record_is_link, record_is_hard_link, record_is_directory, record_is_fifo,
    record_is_half_written, record_of_another_id, record_for_everybody, entry_for_everybody, entry_is_a_file,
    entry_is_empty, huge_record, nothing_but_bytes,
]  # fmt: skip


class World:
    def __init__(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        self.root = tmp_path / "agents"
        self.outside = tmp_path / "outside"
        self.live = self.root / "live_agents"
        for directory in (self.root, self.live, self.outside):
            directory.mkdir(mode=0o700)
        # The directory outside holds a valid record, which following the link would find.
        _file(self.outside / "record.json", as_bytes(version_3()))
        self.before = self.seen()
        self.directory = FilesDirectory(str(self.root), FakeClock())

    def seen(self) -> list[tuple[str, bytes, int]]:
        return [
            (str(path), path.read_bytes() if path.is_file() else b"", path.stat().st_mode)
            for path in sorted(self.outside.rglob("*"))
        ]

    def untouched(self) -> None:
        assert self.seen() == self.before


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that another user can enter; pytest's directories are private."""
    with TemporaryDirectory(prefix="mam-agents-") as folder:
        yield Path(folder)


GPU = default_agent_id("gpu")


@pytest.mark.parametrize("planting", PLANTINGS)
def test_it_is_no_record_and_the_next_publisher_gets_its_place(world: World, planting: Planting) -> None:
    planting(world.live / GPU, world.outside)

    for answer in (by_id(world.directory, GPU), by_name(world.directory, "gpu"), by_any(world.directory, GPU)):
        assert answer.live is None
        assert answer.reason
    assert by_session(world.directory, "gpu").live is None

    world.directory.change(GPU, publish(a_record(), 3600))

    assert by_name(world.directory, "gpu").live is not None
    assert (world.live / GPU).is_dir()
    assert not (world.live / GPU).is_symlink()
    assert (world.live / GPU / "record.json").stat().st_mode & 0o777 == 0o600
    world.untouched()
    clean_up(world.directory, dry_run=False)
    world.untouched()
    assert by_name(world.directory, "gpu").live is not None


@pytest.mark.parametrize("planting", PLANTINGS)
def test_cleanup_takes_it_and_nothing_else(world: World, planting: Planting) -> None:
    planting(world.live / GPU, world.outside)

    rehearsal = clean_up(world.directory, dry_run=True)
    assert [item.agent_id for item in rehearsal.planned] == [GPU]
    assert os.path.lexists(world.live / GPU)
    report = clean_up(world.directory, dry_run=False)

    assert [item.agent_id for item in report.applied] == [GPU]
    assert not os.path.lexists(world.live / GPU)
    assert list(world.directory.leftovers()) == []
    world.untouched()


def test_names_that_no_id_has_are_taken_too(world: World) -> None:
    for name in ("with space", "new\nline", "ünïcode", "-dash", "a.b", "%s"):
        (world.live / name).mkdir()

    assert {lookup.record for lookup in world.directory.read_all()} == {None}
    assert len(clean_up(world.directory, dry_run=False).applied) == 6


@pytest.mark.parametrize("name", ["..", ".", "", "../outside", "a/b", "/etc", "x\0"])
def test_an_id_leads_nowhere_else(world: World, name: str) -> None:
    assert world.directory.read(name).kind == "missing"
    with pytest.raises(BadName):
        world.directory.change(name, refresh("g"))
    world.untouched()


def test_when_live_agents_is_a_link_it_is_not_followed(world: World) -> None:
    world.live.rmdir()
    target = world.outside / GPU
    target.mkdir()
    _file(target / "record.json", as_bytes(version_3()))
    world.before = world.seen()
    world.live.symlink_to(world.outside)

    assert by_id(world.directory, GPU).kind == "malformed"
    assert by_name(world.directory, "gpu").live is None
    assert list(world.directory.read_all()) == []
    assert len(clean_up(world.directory, dry_run=True).planned) == 1
    assert len(clean_up(world.directory, dry_run=False).applied) == 1
    assert not os.path.lexists(world.live)
    world.live.symlink_to(world.outside)
    world.directory.change(GPU, publish(a_record(), 3600))
    assert by_name(world.directory, "gpu").live is not None
    world.untouched()


def test_a_lock_that_is_a_link_is_refused(world: World) -> None:
    (world.root / ".lock").symlink_to(world.outside / "record.json")
    with pytest.raises(StoreUnavailable, match="link"):
        world.directory.change(GPU, publish(a_record(), 3600))
    world.untouched()


def test_a_root_that_others_may_write_is_refused(world: World) -> None:
    world.root.chmod(0o777)
    with pytest.raises(StoreUnavailable, match="others"):
        world.directory.read(GPU)
    with pytest.raises(StoreUnavailable, match="others"):
        world.directory.change(GPU, publish(a_record(), 3600))


def test_leftovers_of_a_killed_writer_are_swept(world: World) -> None:
    _file(_entry(world.live / GPU).with_name("record.json.0123.tmp"), b"half")
    world.directory.change(GPU, publish(a_record(), 3600))
    assert sorted(os.listdir(world.live / GPU)) == ["mam.json", "record.json"]


def test_an_entry_that_goes_while_it_is_read_is_simply_gone(world: World) -> None:
    for number in range(3):
        world.directory.change(f"agent-{number}", publish(a_record(agent_id=f"agent-{number}"), 3600))
    lookups = world.directory.read_all()
    assert next(lookups).agent_id == "agent-0"
    for file in (world.live / "agent-1").iterdir():
        file.unlink()
    (world.live / "agent-1").rmdir()
    assert [lookup.agent_id for lookup in lookups] == ["agent-2"]


def test_a_full_disk_leaves_what_was_there(small_disk: Path) -> None:
    from tests.disks import fill

    directory = FilesDirectory(str(small_disk / "agents"), FakeClock())
    kept = directory.change(GPU, publish(a_record(), 3600))
    large = a_record(groups={"mailbox": {"text": "x" * 20_000}})
    ballast = fill(small_disk)

    with pytest.raises(StoreUnavailable, match="No space left"):
        directory.change(GPU, publish(large, 3600))

    assert directory.read(GPU).record == kept
    assert sorted(os.listdir(small_disk / "agents" / "live_agents" / GPU)) == ["mam.json", "record.json"]
    ballast.unlink()
    directory.change(GPU, publish(large, 3600))


# -- as another user -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="becoming another user needs root")
def test_as_another_user_in_a_tree_that_root_and_a_stranger_have_been_in(open_place: Path) -> None:
    world = World(open_place)
    for number, planting in enumerate([*PLANTINGS, record_is_unreadable]):
        planting(world.live / f"planted-{number:02}", world.outside)
    for path in (world.root, *world.root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.chown(world.outside, NOBODY, NOBODY)
    os.chown(world.outside / "record.json", NOBODY, NOBODY)
    _file(_entry(world.live / "of-stranger"), as_bytes({**version_3(), "agent_id": "of-stranger"})).chmod(0o644)
    os.chown(world.live / "of-stranger", NOBODY, NOBODY)
    os.chown(world.live / "of-stranger" / "record.json", STRANGER, STRANGER)
    _file(_entry(world.live / "strange-place"), b"{}")  # owned by root, so the other user cannot open it
    _file(_entry(world.live / default_agent_id("gpu")), as_bytes(version_3())).chmod(0)
    os.chown(world.live / default_agent_id("gpu"), NOBODY, NOBODY)
    publishing = ["agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m", "--generation", "mine"]

    answers = run_as(
        NOBODY,
        world.root,
        open_place,
        ["agents", "list", "--json"],
        ["agents", "resolve", "--id", "of-stranger", "--json"],
        ["agents", "resolve", "--id", "strange-place", "--json"],
        ["agents", "resolve", "gpu"],
        ["agents", "cleanup", "--dry-run", "--json"],
        publishing,
        ["agents", "resolve", "gpu"],
        ["agents", "cleanup", "--json"],
        ["agents", "resolve", "gpu"],
    )

    assert all("bug" not in err and "Traceback" not in err for _, _, err in answers), answers
    codes = [code for code, _, _ in answers]
    assert codes == [0, 1, 1, 1, 0, 0, 0, 1, 0], answers
    assert {row["answer"] for row in json.loads(answers[0][1])} <= {"malformed", "invalid", "missing"}
    assert "another user" in json.loads(answers[1][1])["reason"]
    report = json.loads(answers[7][1])
    assert [item["agent_id"] for item in report["failed"]] == ["strange-place"]
    assert len(report["applied"]) == len(PLANTINGS) + 3  # the unreadable one, the other user's, and what was put aside
    assert [item["agent_id"] for item in report["kept"]] == [default_agent_id("gpu")]
    world.untouched()
    assert sorted(os.listdir(world.live)) == sorted([default_agent_id("gpu"), "strange-place"])


@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="becoming another user needs root")
def test_the_root_of_another_user_is_refused(open_place: Path) -> None:
    world = World(open_place)
    world.root.chmod(0o755)
    world.live.chmod(0o755)
    before = sorted(os.listdir(world.root))

    answers = run_as(
        NOBODY,
        world.root,
        open_place,
        ["agents", "list"],
        ["agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m"],
        ["agents", "cleanup"],
    )

    assert [code for code, _, _ in answers] == [9, 9, 9]
    assert all("another user" in err for _, _, err in answers)
    assert sorted(os.listdir(world.root)) == before


def run_as(uid: int, root: Path, tmp_path: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.agents.as_user", str(uid), str(tmp_path)],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MAM_AGENTS_DIR": str(root), "LANG": "C.UTF-8"},
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return [tuple(answer) for answer in json.loads(ran.stdout)]
