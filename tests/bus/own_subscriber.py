"""A subscriber as users of the old scripts wrote it, on the names of mqtt_common: `own_subscriber.py --job ID`."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from typing import Any

from mqtt_common import DEFAULT_REGISTRY_DIR, SCHEMA_VERSION, broker_config_from_job, load_job, make_client, with_retry


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--registry-dir", default=DEFAULT_REGISTRY_DIR)
    arguments = parser.parse_args()
    job = load_job(arguments.job, arguments.registry_dir)
    config = broker_config_from_job(job)
    assert config.host is not None
    host = config.host
    client = make_client(config, "own")
    done = threading.Event()

    def on_connect(client: Any, _data: object, _flags: object, _reason: object, _properties: object) -> None:
        client.subscribe(f"{job['topic_prefix']}/events", qos=1)

    def on_subscribe(*_facts: object) -> None:
        print("ready", flush=True)

    def on_message(_client: object, _data: object, message: Any) -> None:
        payload = json.loads(message.payload)
        if payload["schema_version"] != SCHEMA_VERSION or payload["job_id"] != job["job_id"]:
            return
        print(payload["seq"], payload["event"], flush=True)
        if payload["event"] in ("completed", "error"):
            done.set()

    client.on_connect, client.on_subscribe, client.on_message = on_connect, on_subscribe, on_message
    with_retry(lambda: client.connect(host, config.port))
    client.loop_start()
    ended = done.wait(job["timeout_sec"])
    client.disconnect()
    client.loop_stop()
    return 0 if ended else 2


if __name__ == "__main__":
    sys.exit(main())
