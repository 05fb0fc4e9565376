"""`import mqtt_common`: the audit helpers of the seed by their names."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.scripts.conftest import SCRIPTS

if TYPE_CHECKING:
    from tests.scripts.conftest import Shell

APPEND = """
import sys, mqtt_common
sys.stdin.readline()
for number in range(1000):
    mqtt_common.append_event("abc12345", {"event": "received", "by": sys.argv[1], "number": number, "text": "정" * 50})
"""


def test_the_helpers_of_the_seed_work(shell: Shell) -> None:
    told = shell.code("""
import json, mqtt_common as m
record = {"job_id": "abc12345", "status": "pending", "prompt": "정렬", "auth_token": "canary-token",
          "broker": {"host": "h", "port": 1883, "tls": False, "username": "u", "password": "canary-password"}}
m.init_job_log("abc12345", record)
m.append_event("abc12345", {"event": "received", "payload": {"seq": 1}})
m.append_event("abc12345", "status_changed", **{"from": "pending", "to": "running"})
m.update_logged_status("abc12345", "running")
print(json.dumps({
    "logs": str(m.LOGS_DIR), "path": str(m.job_log_path("abc12345")), "jobs": m.list_logged_jobs(),
    "meta": m.read_logged_meta("abc12345"), "status": m.read_logged_status("abc12345"),
    "events": list(m.iter_logged_events("abc12345")),
}))
""")
    found = json.loads(told)
    logs = shell.here / ".mam" / "delegate_job_logs"
    assert found["logs"] == str(logs)
    assert found["path"] == str(logs / "abc12345")
    assert found["jobs"] == ["abc12345"]
    assert found["meta"]["prompt"] == "정렬"
    assert found["status"] == "running"
    assert [line["event"] for line in found["events"]] == ["registered", "received", "status_changed"]
    assert all(line["timestamp"].endswith("Z") and line["job_id"] == "abc12345" for line in found["events"])
    assert "canary" not in (logs / "abc12345" / "meta.json").read_text(encoding="utf-8")


def test_a_status_set_through_the_helper_is_in_registry_and_log(shell: Shell) -> None:
    told = shell.code("""
import registry, mqtt_common as m
job_id = registry.register_job("p", "a", "a")
m.update_job_status(job_id, "cancelled")
print(registry.get_job(job_id)["status"], m.read_logged_status(job_id))
print(*[line["event"] for line in m.iter_logged_events(job_id)])
""")
    assert told.splitlines() == ["cancelled cancelled", "registered status_changed published"]


def test_the_logs_directory_can_be_read_and_set(shell: Shell) -> None:
    shell.environment["DELEGATE_JOB_LOGS_DIR"] = str(shell.here / "named")
    told = shell.code("""
import pathlib, mqtt_common as m
print(m.LOGS_DIR)
m.LOGS_DIR = pathlib.Path("set").absolute()
m.append_event("abc", {"event": "received"})
print(m.job_log_path("abc"))
""")
    assert told.splitlines() == [str(shell.here / "named"), str(shell.here / "set" / "abc")]
    assert (shell.here / "set" / "abc" / "events.ndjson").exists()


def test_writers_never_raise(shell: Shell) -> None:
    (shell.here / "blocked").write_text("a file, not a directory")
    shell.environment["DELEGATE_JOB_LOGS_DIR"] = str(shell.here / "blocked" / "logs")
    told = shell.code("""
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s")
import mqtt_common as m
m.init_job_log("abc", {"status": "pending"})
m.append_event("abc", {"event": "received"})
m.append_event("../abc", {"event": "received"})
m.append_event("abc", {"event": object()})
m.update_logged_status("abc", "running")
print(m.read_logged_meta("abc"), m.read_logged_status("abc"), list(m.iter_logged_events("abc")), m.list_logged_jobs())
""")
    lines = told.splitlines()
    assert set(lines[:-1]) == {"WARNING"}
    assert len(lines[:-1]) == 5
    assert lines[-1] == "None None [] []"


def test_two_processes_append_a_thousand_lines_each(shell: Shell) -> None:
    """M-24."""
    environment = {**shell.environment, "PYTHONPATH": str(SCRIPTS)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND, name], cwd=shell.here, env=environment, stdin=subprocess.PIPE, text=True
        )
        for name in ("first", "second")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    file = shell.here / ".mam" / "delegate_job_logs" / "abc12345" / "events.ndjson"
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert len(lines) == 2000
    for name in ("first", "second"):
        assert [line["number"] for line in lines if line["by"] == name] == list(range(1000))


def test_the_broker_of_the_environment_is_used(shell: Shell) -> None:
    ask = "import json, mqtt_common as m; print(json.dumps(vars(m.broker_config_from_env())))"
    assert json.loads(shell.code(ask))["host"] is None, "there is none by default"
    shell.environment.update(
        MQTT_BROKER="127.0.0.1", MQTT_TLS="1", MQTT_USERNAME="u", MQTT_PASSWORD="p", MQTT_CA_CERTS="/ca"
    )
    found = json.loads(shell.code(ask))
    assert found == {
        "host": "127.0.0.1", "port": 8883, "tls": True, "username": "u", "password": "p", "ca_certs": "/ca",
        "certfile": None, "keyfile": None, "client_id_prefix": "mam",
    }  # fmt: skip


def test_the_helpers_of_a_hermes_project_look_there(shell: Shell) -> None:
    registered = shell.run("registry.py", "register", "x", "--agent", "a", "--registry-dir", ".hermes/jobs")
    job = registered.stdout.strip()

    told = shell.code(f"""
import mqtt_common as m
print(m.DEFAULT_REGISTRY_DIR, m.SCHEMA_VERSION, m.LOGS_DIR)
print(m.load_job("{job}")["prompt"], m.load_job("{job}", m.DEFAULT_REGISTRY_DIR)["prompt"])
print(m.next_seq("{job}"), m.next_seq("{job}", m.DEFAULT_REGISTRY_DIR))
print(*[line["event"] for line in m.iter_logged_events("{job}")])
with m.registry_lock(m.DEFAULT_REGISTRY_DIR):
    print(m.update_job_status("{job}", "running")["status"])
""").splitlines()

    assert told == [
        f".hermes/jobs 1 {shell.here}/.hermes/delegate_job_logs", "x x", "1 2",
        "registered reserved reserved", "running",
    ]  # fmt: skip


def test_the_default_directory_means_the_store_of_this_shell(shell: Shell) -> None:
    """The original subscriber passes it on as the default of its option."""
    shell.environment["MAM_STORE"] = f"sqlite://{shell.here}/jobs.db"
    job = shell.run("registry.py", "register", "x", "--agent", "a").stdout.strip()

    told = shell.code(f"import mqtt_common as m; print(m.load_job('{job}', m.DEFAULT_REGISTRY_DIR)['prompt'])")

    assert told == "x\n"


def test_a_retry_pauses_and_gives_up(shell: Shell) -> None:
    told = shell.code("""
import mqtt_common as m
calls = []
def action(fails):
    calls.append(1)
    if len(calls) <= fails:
        raise ConnectionRefusedError(len(calls))
    return "done"
print(m.with_retry(lambda: action(2), delay=0), len(calls))
calls.clear()
try:
    m.with_retry(lambda: action(9), attempts=3, delay=0)
except ConnectionRefusedError as error:
    print(error, len(calls))
""")
    assert told.splitlines() == ["done 3", "3 3"]


def test_a_client_needs_a_broker_that_is_safe(shell: Shell) -> None:
    told = shell.code("""
import mqtt_common as m
for config in (m.BrokerConfig(), m.BrokerConfig(host="192.0.2.1")):
    try:
        m.make_client(config)
    except Exception as error:
        print(type(error).__name__)
""")
    assert told.splitlines() == ["BadInput", "InsecureBroker"]


def test_only_a_signature_by_the_token_is_valid(shell: Shell) -> None:
    told = shell.code("""
import json, mqtt_common as m
from mam.events.wire import to_wire
event = {"schema_version": 1, "seq": 1, "job_id": "abc12345", "event": "progress",
         "timestamp": "2026-01-01T00:00:00Z", "detail": "정렬", "data": {"n": 1}}
raw = to_wire(event, "token")
forged = raw.replace(b'"n":1', b'"n":2')
right = [raw, raw.decode(), json.loads(raw)]
wrong = [forged, json.loads(forged), event, to_wire(event), b"", "{", {}, {"data": 1}]
print(json.dumps([[m.verify_hmac(one, token) for token in ("token", "other")] for one in right + wrong]))
""")
    assert json.loads(told) == [[True, False]] * 3 + [[False, False]] * 8
