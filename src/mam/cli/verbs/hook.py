"""Report an agent's hooks as events of its job.

This verb is for the settings of a coding agent. It reads the JSON that the agent gives to a hook, prints nothing and
always exits 0. In a job (MAM_JOB_ID), mam stores an event. In a session of `mam agents start` or `adopt`, mam writes to
the log of the session, which its worker reads. Elsewhere it does nothing. mam passes on only the name of the hook and
of the tool, never what the agent was asked, read or wrote.

  "hooks": {"PermissionRequest": [{"hooks": [
    {"type": "command",
     "command": "mam hook claude-code"}]}]}
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser

SECONDS = 2.0
"""The agent waits for its hooks and allows some of them only 1.5 seconds."""

INPUT_LIMIT = 64 * 1024 * 1024
"""The answer of a tool, which the hook carries, may have megabytes."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="AGENT", help="the agent: claude-code, codex, …")


def run(options: Options) -> int:
    """Always 0: a hook must not disturb the agent."""
    return run_words([] if options.word is None else [options.word])


def run_words(words: list[str]) -> int:
    """The same for unparsed arguments, because wrong arguments must not fail either."""
    try:
        _exit_after_timeout()
        _silence_output()
        named, store, directory = _read(words)
        from mam.agents.hook_events import safe_identifier

        _report(safe_identifier(named) or "agent", store, directory)
    except BaseException:  # noqa: S110 - a hook reports no error
        pass
    return 0


def _exit_after_timeout() -> None:
    import time
    from _thread import start_new_thread

    def wait() -> None:
        time.sleep(SECONDS)
        os._exit(0)

    start_new_thread(wait, ())


def _silence_output() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _read(words: list[str]) -> tuple[str, str | None, str | None]:
    """The agent, --store and --registry-dir; other words are ignored."""
    named, places = "", dict[str, str]()
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in ("--store", "--registry-dir"):
            places[option] = value if equals else next(rest, "")
        elif not word.startswith("-"):
            named = named or word
    return named, places.get("--store"), places.get("--registry-dir")


def _report(agent: str, store: str | None, directory: str | None) -> None:
    text = _read_input()
    job, session = os.environ.get("MAM_JOB_ID"), _session()
    if not job and session is None:
        return
    from mam.door_client import decode_json

    given = decode_json(text.decode())
    if not job and session is not None:
        _log_for_session(agent, given, *session)
        return
    from mam.agents.hook_events import event_from_hook

    found = event_from_hook(agent, given)
    if found is None:
        return
    held = os.environ.get("MAM_ATTEMPT", "")
    event, detail, data = found
    event_fields = {"event": event, "detail": detail, "data": data, "attempt": int(held) if held else None}
    event_fields["claim_id"] = (os.environ.get("MAM_CLAIM") or None) if held else None
    assert job is not None
    if os.environ.get("MAM_SOCKET") and store is None and directory is None and _sent_to_door(job, event_fields):
        return
    _publish_to_store(job, event_fields, store, directory)


def _session() -> tuple[str, str] | None:
    """The directory and the generation of the session in which this runs."""
    session = os.environ.get("MAM_SESSION_DIR")
    if session:
        return session, os.environ.get("MAM_GENERATION", "")
    if not os.environ.get("TMUX_PANE"):
        return None
    from mam.agents.adopted import find_adopted

    return find_adopted(os.environ)


def _log_for_session(agent: str, given: Any, session: str, generation: str) -> None:
    """The worker finds the job of the hook: a session serves many jobs, and a hook may come late."""
    import time

    from mam.agents.hook_events import log_line
    from mam.agents.hook_log import append
    from mam.door_client import encode_json
    from mam.jobs.input_rules import is_session_id

    if os.path.isabs(session) and is_session_id(generation):
        append(session, generation, encode_json(log_line(agent, given, time.time_ns() // 1_000_000)).encode())


def _read_input() -> bytes:
    """Read everything even if it is not used, because the agent may still be writing."""
    parts: list[bytes] = []
    size = 0
    while size <= INPUT_LIMIT and (part := os.read(0, 1 << 20)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _sent_to_door(job: str, event_fields: dict[str, Any]) -> bool:
    """False if the worker is gone; the store may still accept the event."""
    from mam.door_client import DoorClient
    from mam.errors import StoreUnavailable

    try:
        door = DoorClient(os.environ["MAM_SOCKET"])
    except StoreUnavailable:
        return False
    door.publish(job, **event_fields)
    return True


def _publish_to_store(job: str, event_fields: dict[str, Any], store: str | None, directory: str | None) -> None:
    from types import SimpleNamespace

    from mam.cli.send_event import deliver
    from mam.config.settings import load_config
    from mam.location.stores import open_registry

    registry = open_registry(store, directory, load_config())
    stored = registry.publish(job, **event_fields)
    deliver(SimpleNamespace(store=store, registry_dir=directory, insecure_broker=False), registry, stored)
