"""What is shown: list, get, status, explain, result, logs, and prefixes of ids."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.command import Mam

EVIL = "red\x1b[31m\x07\x7f\x9b2J \u202edesrever\u2066\u200b\ufeff\u2028 [bold]x[/bold]\tend"
RAW = ("\x1b", "\x07", "\x7f", "\x9b", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028")


def test_list_is_newest_first_and_filters(mam: Mam) -> None:
    first, second = mam.register("one"), mam.register("two", "-s", "other")
    third = mam.register("three")
    mam("complete", third)

    def ids(*words: str) -> list[str]:
        lines = [line.split("\t")[0] for line in mam("list", *words).out.splitlines()]
        assert lines == [record["job_id"] for record in mam("list", "--json", *words).json]
        return lines

    assert ids() == [third, second, first]
    assert ids("--status", "pending") == [second, first]
    assert ids("--status", "pending,completed", "--label", "shell") == [third, first]
    assert ids("--status", "pending", "--status", "completed") == [third, second, first]
    assert ids("--since", "1h") == [third, second, first]
    assert ids("--since", "2099-01-01T00:00:00Z") == []
    mam("list", "--since", "2026-01-01T00:00:00").failed(2, "time zone")
    mam("list", "--status", "banana").failed(2, "banana")
    mam("list", "-s", "").failed(2, "label is empty")
    mam("pause", "--list", "-s", "").failed(2, "--list")


def test_list_reports_the_pauses_of_the_listed_jobs(mam: Mam) -> None:
    mam.register()
    mam("pause", "-s", "other")
    assert "label other" in mam("list").stderr
    assert "label other" in mam("list", "-s", "other").stderr
    assert mam("list", "-s", "shell").stderr == ""
    mam("pause", "--agent", "codex")
    assert "agent codex" in mam("list", "-s", "shell").stderr
    assert "label other" not in mam("list", "-s", "shell").stderr


def test_limit_reports_omitted_jobs_and_json_ignores_it(mam: Mam) -> None:
    for number in range(3):
        mam.register(str(number))
    for limit in (1, 2):
        ran = mam("list", "--limit", str(limit))
        assert len(ran.out.splitlines()) == limit
        assert ran.stderr == "mam: … older jobs are left out; --limit 0 shows all\n"
        shown = mam.on_terminal("list", "--limit", str(limit)).out
        assert shown.count("pending") == limit
        assert "older jobs are left out" in shown
    for limit in (3, 10**30):
        ran = mam("list", "--limit", str(limit))
        assert (len(ran.out.splitlines()), ran.stderr) == (3, "")
    assert len(mam("list", "--limit", "2", "--json").json) == 3
    assert len(mam("list", "--limit", "0").out.splitlines()) == 3
    mam("list", "--limit", "-1").failed(2, "--limit")


def test_a_terminal_shows_fifty_jobs_and_how_many_more_there_are(mam: Mam) -> None:
    from mam.registry import Registry
    from mam.stores.files.store import FilesStore, create_files_store

    path = str(mam.here / ".mam/jobs")
    create_files_store(path)
    store = FilesStore(path)
    for number in range(52):
        Registry(store).register(prompt=f"job {number}", agent="shell")
    store.close()
    shown = mam.on_terminal("list").out
    assert shown.count("pending") == 50
    assert "older jobs are left out" in shown
    assert len(mam("list").out.splitlines()) == 52


def test_a_terminal_gets_a_table(mam: Mam) -> None:
    mam("init")
    assert "mam register" in mam.on_terminal("list").out
    korean = mam.register("정렬 문제 10개를 만들어")
    done = mam.register("done")
    mam("complete", done)
    shown = mam.on_terminal("list").out
    for word in ("JOB", "PROMPT", korean[:8], "정렬 문제 10개를 만들어", "○ pending", "✔ completed (unchecked)"):
        assert word in shown
    assert korean not in shown
    narrow = mam.on_terminal("list", columns=50).out
    assert korean[:8] in narrow
    assert "completed (unchecked)" in narrow


def test_a_silent_job_is_shown_as_quiet(mam: Mam) -> None:
    job = mam.register("x", "--idle-timeout", "1")
    mam("status", job, "--set", "running")
    file = mam.here / f".mam/jobs/{job}.json"
    record = json.loads(file.read_bytes())
    assert record["status"] == "running"
    mam("heartbeat", job)
    from mam.cli.render.table import status_text
    from mam.jobs.record import parse_job
    from mam.util.clock import Moment

    found = parse_job(record, "file")
    later = Moment(wall_ms=2**42)
    assert "quiet" in status_text(found, later).plain


def test_nothing_steers_the_terminal_or_the_pipe(mam: Mam) -> None:
    job = mam.register(EVIL)
    mam("fail", job, "--reason", EVIL)
    done = mam.register()
    mam("complete", done, "--result", EVIL + "\nsecond line")
    for words in (("list",), ("list", "--json"), ("get", job), ("explain", job), ("logs", job), ("logs", "--list"),
                  ("logs", job, "--json"), ("result", done, "--json"), ("wait", job, "--json")):  # fmt: skip
        out = mam(*words).out
        assert not [character for character in RAW if character in out], words
    for words in (("get", job), ("explain", job), ("logs", job), ("result", done), ("wait", job)):
        shown = mam.on_terminal(*words).out
        assert not [character for character in RAW if character in shown], words
    table = mam.on_terminal("list", columns=200).out
    assert r"red\x1b[31m\x07\x7f\x9b2J \u202edesrever" in table
    assert "\u202e" not in table
    assert mam("get", job).json["prompt"] == EVIL
    assert mam("result", done).stdout.decode() == EVIL + "\nsecond line"
    assert "second line" in mam.on_terminal("result", done).out.splitlines()


def test_errors_do_not_repeat_control_characters(mam: Mam) -> None:
    mam("init")
    for words in (("get", "\x1b[31m"), ("\x1b[31m",), ("list", "--\x1b[31m"), ("list", "\x1b"), ("logs", "\x1b[2J")):
        ran = mam(*words)
        assert ran.code in (1, 2)
        assert "\x1b" not in ran.stderr


def test_korean_survives_every_locale(mam: Mam) -> None:
    job = mam.register("한글")
    for locale in ("C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1"):
        assert "한글" in mam("list", LANG=locale, LC_ALL=locale).out
        assert "한글" in mam("get", job, LC_ALL=locale, PYTHONIOENCODING="latin-1").out


def test_an_unknown_or_impossible_id_is_one_line(mam: Mam) -> None:
    mam.register()
    for text in ("nope", "../x", "/etc/passwd", "", ".", "a" * 65, "a/b", "-", "%2e", "*"):
        for verb in ("get", "status", "explain", "result", "logs", "complete", "heartbeat", "cancel"):
            ran = mam(verb, f"--job={text}")
            assert ran.code == 1, (verb, text, ran.stderr)
            assert ran.out == ""
            assert ran.stderr.startswith("mam: ")
            assert "bug" not in ran.stderr


def test_a_unique_beginning_will_do_and_an_ambiguous_one_lists_candidates(mam: Mam) -> None:
    job = mam.register()
    for name in ("same1", "same2"):
        (mam.here / f".mam/jobs/{name}.json").write_text(json.dumps({**mam.record(job), "job_id": name}))
    assert mam("adopt", "--all").code == 0
    assert mam.record("same1")["job_id"] == "same1"
    ambiguous = mam("get", "same")
    ambiguous.failed(6, "same1", "same2")
    mam("complete", "same").failed(6)
    mam("logs", "same").failed(6, "same1", "same2")
    assert mam("wait", "same").code == 6
    assert mam.record(job[:5])["job_id"] == job


def test_explain_states_why_a_job_is_in_its_state(mam: Mam) -> None:
    first, second = mam.register(), mam.register()
    assert "1 pending job" in mam("explain", second).out
    assert "next one" in mam("explain", first).out
    answer = mam("explain", second, "--json").json
    assert (answer["job_id"], answer["status"]) == (second, "pending")
    assert answer["why"]
    assert "start time" in mam("explain", mam.register("x", "--at", "+1h")).out
    mam("pick", "-s", "shell")
    assert "attempt 1" in mam("explain", first).out
    mam("fail", first, "--reason", "boom")
    assert "boom" in mam("explain", first).out


def test_result_states_why_there_is_none(mam: Mam) -> None:
    job = mam.register()
    mam("result", job).failed(1, "pending", "mam wait")
    mam("fail", job, "--reason", "boom")
    mam("result", job).failed(1, "boom")
    done = mam.register()
    mam("complete", done)
    mam("result", done).failed(1, "without a result")


@pytest.mark.parametrize("damage", ["{", "[]", '{"schema_version": 99}', '{"job_id": "../x"}', "\x00\xff"])
def test_a_bad_file_is_named_and_left_and_the_others_are_shown(mam: Mam, damage: str) -> None:
    job = mam.register()
    bad = mam.here / ".mam/jobs/bad.json"
    bad.write_text(damage)
    ran = mam("list")
    assert ran.line.startswith(job)
    assert len(ran.stderr.splitlines()) == 1
    assert "bad.json" in ran.stderr
    assert mam("get", "bad").code == 1
    assert mam("pick", "-s", "shell").line == job
    assert bad.read_text() == damage


def test_logs_prints_the_history_and_its_tail(mam: Mam) -> None:
    job = mam.register()
    mam("complete", job)
    whole = mam("logs", job).out.splitlines()
    assert len(whole) == 4
    for tail in (0, 1, 3, 4, 5, 7, 8, 9, 10**30):
        assert mam("logs", job, "--tail", str(tail)).out.splitlines() == whole[max(0, 4 - tail) :]
    mam("logs", job, "--tail", "-1").failed(2, "--tail")
    mam("logs").failed(2, "give the id")
    mam("logs", "nope").failed(1, "nope")
    rows = mam("logs", "--list", "--json").json
    assert [(row["job_id"], row["status"]) for row in rows] == [(job, "completed")]
    shutil.rmtree(mam.here / ".mam/delegate_job_logs")
    assert "registered" in mam("logs", job).out, "the log is caught up from the journal"


def test_logs_can_live_elsewhere(mam: Mam) -> None:
    where = str(mam.here / "history")
    job = mam("register", "x", "--agent", "shell", DELEGATE_JOB_LOGS_DIR=where).line
    assert "registered" in mam("logs", job, DELEGATE_JOB_LOGS_DIR=where).out
    assert (mam.here / "history" / job / "events.ndjson").exists()
    assert not (mam.here / ".mam/delegate_job_logs").exists()


def test_a_log_that_cannot_be_written_breaks_nothing(mam: Mam) -> None:
    (mam.here / "file").touch()
    ran = mam("register", "x", "--agent", "shell", DELEGATE_JOB_LOGS_DIR=str(mam.here / "file"))
    assert len(ran.line) == 32
    made, warned = ran.stderr.splitlines()
    assert made.startswith("mam: created a store")
    assert warned.startswith("mam: the audit log is behind")
    assert str(mam.here / "file") in warned
    assert "Errno" not in warned


def test_a_broken_line_of_a_log_is_reported(mam: Mam) -> None:
    job = mam.register()
    with (mam.here / ".mam/delegate_job_logs" / job / "events.ndjson").open("ab") as file:
        file.write(b"not json\n")
    ran = mam("logs", job)
    assert len(ran.out.splitlines()) == 1
    assert ran.stderr.startswith("mam: ")
    assert "line 2 is not whole" in ran.stderr


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_the_log_follows_a_registry_restored_from_a_backup(mam: Mam, kind: str) -> None:
    folder = mam.here / "place"
    folder.mkdir(mode=0o700)
    mam.env["MAM_STORE"] = str(folder / "jobs") if kind == "files" else f"sqlite://{folder}/jobs.db"
    mam.env["DELEGATE_JOB_LOGS_DIR"] = str(mam.here / "history")
    first = mam.register()
    shutil.copytree(folder, mam.here / "backup")
    for _ in range(3):
        mam("publish", first, "progress")
    shutil.rmtree(folder)
    shutil.copytree(mam.here / "backup", folder)
    second = mam.register("two")
    assert mam("complete", second).line == "completed"
    assert "-> completed" in mam("logs", second).out
    assert len(mam("logs", first).out.splitlines()) == 4
