"""What an agent left is read on another host: here a user with another home, who shares only the database."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Mam, finish
from tests.waiting import Gate, await_that

RUN = ("--agent", "shell", "-s", "far")


def elsewhere(mam: Mam, tmp_path: Path, url: str) -> Mam:
    """The same command on another host: another directory, another home."""
    for name in ("there", "home-there"):
        (tmp_path / name).mkdir()
    other = Mam(tmp_path / "there", tmp_path / "home-there")
    mam.env["MAM_STORE"] = other.env["MAM_STORE"] = url
    return other


def test_output_and_artifacts_are_read_from_elsewhere(mam: Mam, url: str, tmp_path: Path) -> None:
    other = elsewhere(mam, tmp_path, url)
    job = mam("register", "echo one; echo two; printf '\\0\\377' >made.bin", *RUN, "--artifact", "made.bin").line
    assert mam("worker", "-s", "far", "--drain").code == 0
    assert other("output", job).stdout == b"one\ntwo\n"
    assert other("output", job, "--follow", "--tail", "1").stdout == b"two\n"
    assert other("artifacts", job, "--get", "made.bin").stdout == b"\0\xff"
    (listed,) = other("artifacts", job, "--json").json["artifacts"]
    assert (listed["path"], listed["size"], listed["is_stored"]) == ("made.bin", 2, True)
    other("artifacts", job, "--get", "other.bin").failed(1, "no artifact 'other.bin'")
    host = mam.record(job)["run"]["host"]
    assert other("result", job, "--json").json["host"] == host
    assert [one["job_id"] for one in other("list", "--host", host, "--json").json] == [job]
    assert other("list", "--host", "nowhere", "--json").json == []


def test_output_is_followed_from_elsewhere(mam: Mam, url: str, tmp_path: Path) -> None:
    other, gate = elsewhere(mam, tmp_path, url), Gate(tmp_path)
    job = mam("register", f"echo one; {gate.wait}; echo two", *RUN).line
    follower = other.start("output", job, "--follow")
    worker = mam.start("worker", "-s", "far", "--drain")
    await_that(lambda: other("output", job).stdout == b"one\n")
    gate.open()
    assert finish(worker).code == 0
    ran = finish(follower)
    assert (ran.code, ran.stdout) == (0, b"one\ntwo\n")
    gate.close()


def test_a_missing_upload_is_named(mam: Mam, url: str, tmp_path: Path) -> None:
    other = elsewhere(mam, tmp_path, url)
    settings = mam.home / "config" / "mam" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[output]\nupload = "none"\n', encoding="utf-8")
    job = mam("register", "echo one; echo made >made.txt", *RUN, "--artifact", "made.txt").line
    assert mam("worker", "-s", "far", "--drain").code == 0
    other("output", job).failed(1, "has no output here")
    assert [one["is_stored"] for one in other("artifacts", job, "--json").json["artifacts"]] == [False]
    assert mam("artifacts", job, "--get", "made.txt").stdout == b"made\n", "from the directory of this host"
