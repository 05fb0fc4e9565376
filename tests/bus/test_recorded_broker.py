"""The broker in a job's record: `register` writes it, and a shell without settings sends with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bus.following import ended, wait_for_stdout
from tests.bus.mosquitto import Mosquitto, Reader, as_parts
from tests.bus.test_scripts import SCRIPTS, run_script
from tests.cli.command import Mam

pytestmark = pytest.mark.external


def _with(mam: Mam, env: dict[str, str]) -> Mam:
    """The command with more variables."""
    configured = Mam(mam.here, mam.home)
    configured.env = {**mam.env, **env}
    return configured


def _at(broker: Mosquitto) -> str:
    return f"127.0.0.1:{broker.port}"


def test_an_event_is_sent_from_the_record_alone(mam: Mam, broker: Mosquitto) -> None:
    job = _with(mam, broker.env)("register", "x", "--agent", "a").line
    reader = Reader(broker)

    ran = run_script(mam, "publish_event.py", "--job", job, "--event", "started")

    assert (ran.line, ran.stderr) == ("1", "")
    assert as_parts(reader.take(1)[0])[2]["event"] == "started"


def test_the_record_has_no_login(mam: Mam, broker: Mosquitto) -> None:
    login = {"MQTT_USERNAME": "canary-user", "MQTT_PASSWORD": "canary-password"}

    job = _with(mam, broker.env | login)("register", "x", "--agent", "a").line

    expected = {"host": "127.0.0.1", "port": broker.port, "tls": False, "username": None, "password": None}
    assert mam.record(job)["broker"] == expected
    for file in (mam.here / ".mam").rglob("*"):
        assert file.is_dir() or b"canary" not in file.read_bytes(), file


def test_the_settings_name_it(mam: Mam) -> None:
    file = mam.home / "config/mam/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[broker]\nhost = "mqtt.example"\ntls = true\npassword_file = "/nowhere/at/all"\n')

    job = mam("register", "x", "--agent", "a").line

    broker = mam.record(job)["broker"]
    assert (broker["host"], broker["port"], broker["tls"]) == ("mqtt.example", 8883, True)


def test_the_options_name_broker_and_topic(mam: Mam, broker: Mosquitto) -> None:
    words = ("--broker", _at(broker), "--topic-prefix", "team/x")
    job = mam("register", "x", "--agent", "a", *words, MQTT_BROKER="192.0.2.1", MQTT_PORT="7").line
    reader = Reader(broker, topic="team/x/events")

    assert mam("publish", job, "progress").line == "1"

    assert as_parts(reader.take(1)[0])[1] == "team/x/events"
    assert mam.record(job)["topic_prefix"] == "team/x"


@pytest.mark.parametrize("prefix", ["", "team/+", "#", "$SYS", "a\nb", "x" * 300])
def test_a_prefix_that_is_no_topic_is_rejected(mam: Mam, prefix: str) -> None:
    mam("register", "x", "--agent", "a", "--topic-prefix", prefix).failed(2, "topic prefix")
    assert not (mam.here / ".mam").exists()


@pytest.mark.parametrize("address", ["mqtt://h:1", "me:secret@h", "h:0", "h:99999"])
def test_a_broker_that_is_no_address_is_rejected(mam: Mam, address: str) -> None:
    ran = mam("register", "x", "--agent", "a", "--broker", address)
    ran.failed(2)
    assert "secret" not in ran.stderr


def test_a_broker_on_another_host_signs(mam: Mam) -> None:
    job = mam("register", "x", "--agent", "a", "--broker", "mqtt.example").line
    local = mam("register", "x", "--agent", "a", "--broker", "localhost").line

    secrets = (mam.here / ".mam/jobs/.store/secrets").read_text()
    assert job in secrets
    assert local not in secrets


def test_a_given_token_signs(mam: Mam, broker: Mosquitto) -> None:
    from mam.events.wire import parse_wire

    reader = Reader(broker)
    for word, stdin in (("canary-token", b""), ("-", b"canary-token\n")):
        job = mam("register", "x", "--agent", "a", "--broker", _at(broker), "--auth-token", word, stdin=stdin).line
        mam("publish", job, "progress")
        parse_wire(reader.take(1)[0].split(" ", 2)[2].encode(), "canary-token")
        assert mam.record(job)["auth_token"] is None
    bad = mam("register", "x", "--agent", "a", "--auth-token", "canary token")
    bad.failed(2, "auth token")
    assert "canary" not in bad.stderr


def test_the_old_script_reports_that_there_is_no_broker(mam: Mam) -> None:
    job = mam.register()

    ran = run_script(mam, "publish_event.py", "--job", job, "--event", "progress")

    assert ran.line == "1"
    assert "was not sent" in ran.stderr
    assert "no broker" in ran.stderr
    assert mam("publish", job, "progress").stderr == ""


def test_a_worker_without_a_broker_uses_those_of_its_jobs(mam: Mam, broker: Mosquitto) -> None:
    """The agent reports through the door, so only the worker can send."""
    reader = Reader(broker)
    job = mam("register", f"{sys.executable} -m mam publish progress", "--agent", "shell", "--broker", _at(broker)).line

    worker = mam.start("worker", "-s", "shell", "--once")

    payloads = [as_parts(line)[2] for line in reader.take(3)]
    assert ended(worker)[0] == 0
    assert {payload["job_id"] for payload in payloads} == {job}
    assert [payload["event"] for payload in payloads] == ["started", "progress", "completed"]


def test_a_child_has_its_parents_broker(mam: Mam, broker: Mosquitto) -> None:
    """Not the one that its agent names in its own environment."""
    child = f"MQTT_BROKER=192.0.2.1 {sys.executable} -m mam register child --agent shell -s other"
    job = mam("register", child, "--agent", "shell", "--broker", _at(broker)).line

    assert ended(mam.start("worker", "-s", "shell", "--once"))[0] == 0

    (made,) = [one for one in mam("list", "--json").json if one["parent_id"] == job]
    assert made["broker"]["port"] == broker.port


def test_a_job_from_the_inbox_has_it(mam: Mam, broker: Mosquitto) -> None:
    place = mam.here / "inbox/acme/shop/main"
    place.mkdir(parents=True)
    (place / "x.prompt.md").write_text("true\n")

    ran = _with(mam, broker.env)("inbox", "once", "--agent", "shell")

    assert ran.code == 0, ran.stderr
    (made,) = mam("list", "--json").json
    assert made["broker"]["port"] == broker.port


def test_a_retry_keeps_broker_and_prefix(mam: Mam) -> None:
    job = mam.register("x", "--broker", "localhost:7", "--topic-prefix", "team/x")
    mam("cancel", job)

    again = mam.record(mam("retry", job).line)

    assert (again["broker"]["port"], again["topic_prefix"]) == (7, "team/x")


def test_sending_for_some_jobs_passes_over_no_event_of_the_others(mam: Mam, broker: Mosquitto) -> None:
    """A shell without settings sends only the events of jobs whose record names the broker."""
    other = mam.register()
    mam("publish", other, "progress", "--detail", "before")
    named = mam.register("x", "--broker", _at(broker))
    mam("publish", named, "progress")
    reader = Reader(broker)

    _with(mam, broker.env)("publish", other, "progress")

    jobs = [json.loads(line.split(" ", 2)[2])["job_id"] for line in reader.take(3)]
    assert jobs.count(other) == 2
    assert jobs.count(named) == 1


def test_a_record_of_the_old_scripts_sends_with_its_password(mam: Mam, tmp_path: Path) -> None:
    """The password moves out of the record, and `mqtt_common` still finds it."""
    jobs = mam.here / ".hermes/jobs"
    jobs.mkdir(parents=True)
    record = {
        "schema_version": 1, "job_id": "abc12345", "status": "pending", "created_at": "2026-06-19T09:30:00Z",
        "updated_at": "2026-06-19T09:30:00Z", "prompt": "x", "agent": "a", "agent_session": "a",
        "broker": {"host": "mqtt.example", "port": 1883, "tls": True, "username": "u", "password": "canary"},
    }  # fmt: skip
    (jobs / "abc12345.json").write_text(json.dumps(record))

    told = run_script(
        mam, "mqtt_common.py",
        code="import mqtt_common as m; c = m.broker_config_from_job(m.load_job('abc12345')); print(c.password, c)",
    )  # fmt: skip

    password, _, shown = told.line.partition(" ")
    assert password == "canary"
    assert "canary" not in shown


def test_a_users_own_subscriber_imports_and_runs(mam: Mam, broker: Mosquitto) -> None:
    """It is written as the original was: settings, record, client and retries come from mqtt_common."""
    job = mam.register("x", "--broker", _at(broker))
    own = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "own_subscriber.py"), "--job", job],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=mam.here, env={**mam.env, "PYTHONPATH": str(SCRIPTS)},
    )  # fmt: skip
    wait_for_stdout(own, "ready")

    for event in ("started", "progress", "completed"):
        mam("publish", job, event)

    code, out, _ = ended(own)
    assert (code, out.splitlines()) == (0, ["1 started", "2 progress", "3 completed"])
