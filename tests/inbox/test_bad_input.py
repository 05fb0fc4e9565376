"""Files that cannot become jobs: an error states what to do, the prompt is unchanged, and the inbox goes on."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from mam.errors import BadInput, StoreUnavailable
from mam.inbox.front_matter import FrontMatter, parse
from tests.disks import fill
from tests.inbox.world import WHERE, World, fork

if TYPE_CHECKING:
    from pathlib import Path


def refused(world: World, content: bytes, name: str = "x.prompt.md", where: str = WHERE) -> str:
    """The error of this file, while a good file beside it becomes a job."""
    world.drop(name, content, where)
    world.drop("good.prompt.md", "good")
    world.steady()
    assert world.only_job().prompt == "good"
    outcome = (world.root / "finished" / where / name.replace(".prompt.", ".error.")).read_bytes()
    assert outcome.startswith(content)
    return outcome[len(content) :].decode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty; write the task into it"),
        (b" \n\n\t", "it is empty"),
        (b"---\nagent: shell\n---\n\n", "it is empty"),
        (b"caf\xe9", "not UTF-8 text (byte 3); save it as UTF-8"),
        (b"a\0b", "NUL"),
        (b"---\nmam:\n  colour: red\n---\ndo", "line 3: 'colour' is not a key"),
        (b"---\nmam: red\n---\ndo", "line 2: mam must be a table"),
        (b"---\ntitle: x\nmam:\n  priority: high\n---\ndo", "line 4: priority: 'high' is not a whole number"),
        (b"---\nagent: [unclosed\n---\ndo", "is not YAML in line"),
        (b"---\nagent: !!python/object/apply:os.system ['id']\n---\ndo", "must be one value, not a list"),
        (b"---\npriority: high\n---\ndo", "line 2: priority: 'high' is not a whole number"),
        (b"---\npriority: 5000\n---\ndo", "priority must be between -1000 and 1000"),
        (b"---\ntimeout: soon\n---\ndo", "is not a duration"),
        (b"---\nat: tomorrow\n---\ndo", "is not a time"),
        (b"---\nat: 2026-01-01T00:00:00\n---\ndo", "no time zone"),
        (b"---\npermissions: all\n---\ndo", "'all' is none of ask, edit, full"),
        (b"---\nworktree: perhaps\n---\ndo", "neither true nor false"),
        (b"---\nworktree: true\n---\ndo", "no repository is known for acme/shop; add it to [repos] in config.toml"),
        (b"---\nafter: 00000000\n---\ndo", "No job 00000000"),
        (b"---\nartifacts: [/etc/passwd]\n---\ndo", "must be a relative path"),
        (b"---\nagent: a\nagent: b\n---\ndo", "line 3: agent appears twice"),
        (b"---\nagent:\n---\ndo", "line 2: agent: it has no value"),
    ],
)
def test_the_reason_of_a_refusal_is_written_below_the_prompt(world: World, content: bytes, words: str) -> None:
    outcome = refused(world, content)
    assert words in outcome
    assert "drop it again" in outcome


def test_64_mebibytes_are_kept_and_refused(world: World) -> None:
    assert "larger than 8,388,608 bytes" in refused(world, b"x" * (64 << 20))


def test_a_path_that_is_too_short(world: World) -> None:
    assert "its path is too short: it belongs in inbox/<owner>/<repo>/<branch>/" in refused(
        world, b"do it", where="acme/shop"
    )


FOREIGN = {
    "the block of the older API": "---\npv:\n  job_id: 0123\n  repo: acme/shop\n  note: keep\n---\ndo it",
    "a title": "---\ntitle: A task\ntags: [a, b]\n---\ndo it",
    "a title beside a key of mam": "---\ntitle: A task\nagent: codex\n---\ndo it",
    "a rule": "---\ndo it",
    "a rule and another": "---\n\ndo it\n\n---\nand that",
    "a list": "---\n- a\n- b\n---\ndo it",
    "an anchor": "---\na: &x [1]\nb: *x\n---\ndo it",
    "not YAML": '---\nit says: "never closed\nand so on\n---\ndo it',
    "deep": f"---\na: {'[' * 30_000}\n---\ndo it",
    "an unknown key": "---\nagnet: shell\n---\ndo it",
    "an unknown key beside a key of mam": "---\nagent: codex\npermisions: ask\n---\ndo it",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_head_of_another_tool_is_part_of_the_prompt(world: World, name: str) -> None:
    world.drop("x.prompt.md", FOREIGN[name])

    inbox = world.open()
    inbox.run_cycle()

    job = world.only_job()
    assert (job.prompt, job.agent) == (FOREIGN[name], "shell")
    (copy,) = (world.root / "processed").rglob("prompt.md")
    assert copy.read_text() == FOREIGN[name]


def test_a_head_that_is_not_read_is_reported_if_it_has_keys_of_mam(world: World) -> None:
    head = "---\nauthor: me\nagent: codex\npermisions: ask\n---\n"
    world.drop("x.prompt.md", f"{head}do it")
    world.drop("y.prompt.md", "---\ntitle: x\npriority: 3\n---\ndo that")
    world.drop("z.prompt.md", "---\ntitle: x\n---\ndo that too")

    world.steady()

    known = {rel: words for what, rel, words in world.notifications if what == "taken"}
    why = "line 4: 'permisions' is not a key of mam's front matter (did you mean permissions?)"
    so = "so the head is part of the prompt, and mam did not read agent"
    assert known["acme/shop/main/x.prompt.md"] == f"{why}, {so}"
    assert "line 2: 'title' is not a key" in known["acme/shop/main/y.prompt.md"]
    assert known["acme/shop/main/z.prompt.md"] == ""
    registry = world.registry()
    while (job := registry.pick("inbox", owner="me")) is not None:
        registry.complete(job.job_id, attempt=1)
    world.steady()
    outcome = (world.root / "finished" / WHERE / "x.done.md").read_text()
    assert outcome.startswith(f"{head}do it")
    assert f"- note: {why}" in outcome


def test_a_block_of_mam_beside_others_is_read_and_all_of_it_is_passed_on(world: World) -> None:
    both = "---\ntitle: A task\nmam:\n  priority: 7\n  artifacts: [a.md]\npv:\n  note: keep\n---\ndo it"
    world.drop("x.prompt.md", both)
    world.drop("y.prompt.md", "---\nmam:\n  priority: 8\n---\ndo that")

    world.open().run_cycle()

    first, second = world.all_jobs()
    assert (first.prompt, first.priority, first.expected_artifacts) == (both, 7, ["a.md"])
    assert (second.prompt, second.priority) == ("do that", 8)


def test_every_key_of_front_matter_is_read(world: World) -> None:
    text = """\
---
agent: codex
label: tmux:gpu
priority: 7
artifacts: [a.md, b/c.md]
timeout: 30m
idle_timeout: 90
retries: 0
at: +2h
permissions: ask
worktree: no
push: on
pull_request: off
---
# Do it

--- not the end ---
"""
    wishes, prompt = parse(text)
    at = wishes.at
    assert at is not None
    assert wishes == FrontMatter(
        agent="codex", label="tmux:gpu", priority=7, artifacts=["a.md", "b/c.md"], timeout=1800, idle_timeout=90,
        retries=0, at=at, permissions="ask", worktree=False, push=True, pull_request=False,
    )  # fmt: skip
    assert prompt == "# Do it\n\n--- not the end ---\n"
    assert parse("\ufeff---\r\nagent: x\r\n---\r\nhi\r\n") == (FrontMatter(agent="x"), "hi\r\n")
    assert parse("---\n---\nhi") == (FrontMatter(), "hi")
    assert parse("no front matter\n---\n") == (FrontMatter(), "no front matter\n---\n")
    world.drop("x.prompt.md", text.replace("push: on\n", ""))
    world.steady()
    job = world.only_job()
    assert (job.agent, job.agent_session, job.priority, job.timeout_sec) == ("codex", "tmux:gpu", 7, 1800)
    assert (job.expected_artifacts, job.idle_timeout_sec, job.max_retries) == (["a.md", "b/c.md"], 90, 0)
    assert (job.status, job.waiting_for, job.permissions, job.workspace) == ("waiting", "time", "ask", "fresh")


def test_a_bomb_of_aliases_costs_nothing() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join(['*' + old] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    text = "---\n" + "\n".join(lines) + "\n---\nhi"

    assert parse(text)[1] == text
    with pytest.raises(BadInput, match="no anchor and no alias"):
        parse("---\nlabel: &a x\nagent: *a\n---\nhi")


# -- not a file, or another user's -----------------------------------------------------------------------------------


def test_links_and_directories_that_are_called_prompts(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("private")
    folder = world.inbox / WHERE
    (folder / "dir.prompt.md").mkdir(parents=True)
    (folder / "dir.prompt.md" / "inner.prompt.md").write_text("inner")
    (folder / "link.prompt.md").symlink_to(secret)
    (folder / "dangling.prompt.md").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe.prompt.md")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "o.prompt.md").write_text("outside")
    (folder / "tree").symlink_to(tmp_path / "outside")
    inbox = world.open()
    inbox.run_cycle()
    inbox.run_cycle()
    assert [job.prompt for job in world.all_jobs()] == ["inner"]
    for name in ("link", "dangling", "pipe"):
        outcome = (folder / f"{name}.error.md").read_text()
        assert "copy the file itself" in outcome
        assert "private" not in outcome
        assert os.path.lexists(folder / f"{name}.prompt.md")
    assert [what for what, _, _ in world.notifications].count("left") == 3  # once for each, not at every scan
    assert secret.read_text() == "private"


def test_a_hard_link_is_left_until_it_is_the_only_name(world: World, tmp_path: Path) -> None:
    """Another user could have placed the link; its owner alone would make it look like the user's own."""
    secret = tmp_path / "secret"
    secret.write_text("private")
    (world.inbox / WHERE).mkdir(parents=True)
    os.link(secret, world.inbox / WHERE / "x.prompt.md")
    world.steady()
    assert world.all_jobs() == []
    assert "hard link" in (world.inbox / WHERE / "x.error.md").read_text()
    secret.unlink()
    world.steady()
    assert world.only_job().prompt == "private"


@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="becoming another user needs root")
def test_a_file_that_may_not_be_read_stays_where_it_is(quick_path: Path) -> None:
    """As a user without permissions on this project: modules and the schema of a new store are loaded first."""
    warm = World(_made(quick_path / "warm"))
    (warm.inbox / WHERE).mkdir(parents=True)
    (warm.inbox / WHERE / "x.prompt.md").symlink_to("nowhere")
    warm.drop("y.prompt.md")
    warm.steady()
    warm.close()
    os.chmod(quick_path, 0o711)
    folder = _made(quick_path / "theirs")
    theirs = World(folder)
    theirs.steady()
    theirs.close()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534)
    child = fork()
    if child == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            world = World(folder, uids=frozenset({65534}))
            world.drop("x.prompt.md", "secret").chmod(0)
            world.drop("y.prompt.md", "good")
            world.steady()
            outcome = (world.inbox / WHERE / "x.error.md").read_text()
            assert "it cannot be read: Permission denied; `chmod u+r` it" in outcome
            assert world.only_job().prompt == "good"
            (world.inbox / WHERE / "x.prompt.md").chmod(0o600)
            world.steady()
            assert [job.prompt for job in world.all_jobs()] == ["good", "secret"]
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_link_that_is_replaced_by_a_file_is_taken(world: World, tmp_path: Path) -> None:
    folder = world.inbox / WHERE
    folder.mkdir(parents=True)
    (folder / "x.prompt.md").symlink_to(tmp_path / "nowhere")
    world.steady()
    assert "copy the file itself" in (folder / "x.error.md").read_text()
    (folder / "x.prompt.md").unlink()
    world.drop("x.prompt.md", "now")
    world.steady()
    assert world.only_job().prompt == "now"


@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="giving files away needs root")
def test_files_of_other_users_are_left_alone_unless_they_are_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    os.chown(world.drop("x.prompt.md", "theirs"), 12345, -1)
    world.steady()
    assert world.all_jobs() == []
    assert "belongs to another user (uid 12345)" in (world.inbox / WHERE / "x.error.md").read_text()
    world.close()
    world.settings = world.settings.replace(uids=frozenset({os.geteuid(), 12345}))
    world.steady()
    assert world.only_job().prompt == "theirs"
    world.close()


def test_an_unreadable_file_stays_until_it_can_be_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is simulated, because root may read everything."""
    from mam.inbox import submit

    path = world.drop("x.prompt.md", "do it")
    read = submit.read_file

    def refuse(_folder: int, _name: str, _limit: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(submit, "read_file", refuse)
    world.open().run_cycle()
    assert path.read_text() == "do it"
    assert "it cannot be read: Permission denied" in (world.inbox / WHERE / "x.error.md").read_text()
    monkeypatch.setattr(submit, "read_file", read)
    os.chmod(path, 0o600)
    world.steady()
    assert world.only_job().prompt == "do it"


@pytest.mark.parametrize("name", ["bad\udcff.prompt.md", "new\nline.prompt.md", "x" * 240 + ".prompt.md"])
def test_names_that_no_record_can_hold(world: World, name: str) -> None:
    world.drop(name, "do it")
    world.steady()
    assert world.all_jobs() == []
    assert "rename it" in _outcome(world, name) or "shorter" in _outcome(world, name)
    assert (world.inbox / WHERE / name).read_text() == "do it"


def _outcome(world: World, name: str) -> str:
    return (world.inbox / WHERE / name.replace(".prompt.", ".error.")).read_text()


def test_a_prompt_that_vanishes_after_its_claim_is_a_job_that_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mam.inbox import ingest, tree

    world.drop("x.prompt.md", "do it")
    move = tree.move

    def steal(folder: int, name: str, to_folder: int, to_name: str) -> None:
        move(folder, name, to_folder, to_name)
        os.unlink(to_name, dir_fd=to_folder)

    monkeypatch.setattr(ingest, "move", steal)
    world.open().run_cycle()
    monkeypatch.setattr(ingest, "move", move)
    world.steady()
    job = world.only_job()
    assert job.status == "error"
    assert "was gone after it had been claimed" in str(job.reason)
    assert world.files("processed") == [f"{WHERE}/{job.job_id}/NO_INPUT.md"]
    assert world.files("finished") == [f"{WHERE}/x.error.md"]
    assert world.mirrored(job.job_id)["state"] == "failed_final"


# -- disks -----------------------------------------------------------------------------------------------------------


def test_a_full_disk_loses_nothing_at_any_step(small_disk: Path) -> None:
    """The ballast leaves a little more space at each attempt, so that another step fails."""
    done = 0
    for room in range(0, 120 * 1024, 4096):
        world = World(_made(small_disk / f"w{room}"))
        path = world.drop("x.prompt.md", b"p" * 5000)
        inbox = world.open()
        ballast = fill(small_disk)
        with open(ballast, "r+b") as file:
            file.truncate(max(0, ballast.stat().st_size - room))
        try:
            inbox.run_cycle()
        except (StoreUnavailable, OSError):
            pass
        there = [path, path.with_name("x.running.md")]
        assert any(file.exists() and file.read_bytes() == b"p" * 5000 for file in there)
        ballast.unlink()
        world.steady()
        assert world.only_job().prompt == "p" * 5000
        world.registry().complete(world.only_job().job_id)
        ballast = fill(small_disk)
        with open(ballast, "r+b") as file:
            file.truncate(max(0, ballast.stat().st_size - room))
        try:
            inbox.run_cycle()
        except (StoreUnavailable, OSError):
            pass
        ballast.unlink()
        world.steady()
        (finished,) = world.files("finished")
        assert (world.root / "finished" / finished).read_bytes().startswith(b"p" * 5000)
        world.close()
        subprocess.run(["rm", "-rf", str(world.folder)], check=True)
        done += 1
    assert done == 30


def test_an_unwritable_inbox_is_reported_and_ingested_later(small_disk: Path) -> None:
    world = World(small_disk)
    world.drop("x.prompt.md")
    inbox = world.open()
    subprocess.run(["mount", "--bind", str(world.inbox), str(world.inbox)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(world.inbox)], check=True)
        inbox.run_cycle()
        inbox.run_cycle()
        assert any("Read-only file system" in words for words in world.complaints)
        assert world.all_jobs() == []
    finally:
        subprocess.run(["umount", str(world.inbox)], check=True)
    inbox.run_cycle()
    assert world.files("inbox") == [f"{WHERE}/x.running.md"]
    assert world.only_job().prompt == "do it"
    world.close()


def test_a_root_that_cannot_be_written_is_one_clear_line(small_disk: Path) -> None:
    world = World(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreUnavailable, match=r"cannot be written"):
        world.open()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    world.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
