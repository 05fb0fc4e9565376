"""Restart a session with its command; print id and generation.

mam stops the session if it still runs. The new session has a new generation: mam rejects writes of the old one, and its
jobs can be claimed again. This also replaces a session that died while its lease is still valid.
"""

from __future__ import annotations

from mam.agents.control import check_manifest
from mam.agents.errors import NotPublished
from mam.agents.files_directory import agents_directory
from mam.agents.hook_setup import HOOKED
from mam.agents.launch import Plan, launch
from mam.agents.lease import DEFAULT_SECONDS, length_seconds
from mam.agents.lookup import require_live
from mam.agents.record import RETIRED
from mam.agents.stop import stop_session
from mam.cli.verbs.agents_verbs.common import add_agent_arguments, directory_of, look_up, print_started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)


def run(options: Options) -> int:
    directory = directory_of(options)
    name, answer = look_up(directory, options)
    record = answer.record if answer.record is not None else require_live(answer, name)
    if record.lifecycle.state == RETIRED or not record.lifecycle.relaunchable:
        why = "it is retired" if record.lifecycle.state == RETIRED else "mam did not start it and has no command for it"
        raise NotPublished(agent=record.agent_id, why=why)
    manifest = check_manifest(record)
    plan = Plan(
        agent_name=record.agent_name,
        agent_id=record.agent_id,
        tool=record.identity.tool,
        session=manifest.tmux_session_name,
        command=manifest.command,
        workdir=manifest.workdir or "/",
        agent_def_dir=record.runtime.agent_def_dir,
        hooks=bool(manifest.hooks) or record.identity.tool not in HOOKED,
        lease_seconds=length_seconds(record) if record.liveness else DEFAULT_SECONDS,
    )
    stop_session(directory, record, "restart")
    return print_started(options, launch(directory, agents_directory(), plan))
