"""Show the history of a job from the audit log.

The audit log outlives the registry, so this also works for jobs and stores that no longer exist.
"""

from __future__ import annotations

from mam.audit.log import iter_lines, list_jobs, read_meta, read_status
from mam.cli.args.options import add_job, at_door, door_of, named_job, number
from mam.cli.render.streams import print_json_array, print_json_line, print_row, say
from mam.cli.render.text import first_line
from mam.cli.render.timeline import format_line
from mam.errors import BadInput, MamError, StoreMissing, StoreUnavailable, UnknownJob
from mam.location.stores import catch_up_log, check_ownership, locate, open_located
from mam.registry import only_match
from mam.stores.common import event_lines
from mam.stores.port import JobWithEvents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.location.stores import StoreLocation


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--tail", type=number, metavar="N", help="print only the last N lines")
    parser.add_argument("--list", action="store_true", help="list every logged job: id, status, agent, label, prompt")


def run(options: Options) -> int:
    if options.tail is not None and options.tail < 0:
        raise BadInput(why="--tail takes a number of lines")
    lines = None if options.list else _lines_at_door(options)
    if lines is None:
        from mam.config.settings import load_config

        config = load_config()
        found = locate(options.store, options.registry_dir, config)
        check_ownership(found)
        _catch_up(found, config)
        if options.list:
            return _list(found.logs_dir, as_json=options.json)
        lines = _logged(found, config, named_job(options))
    for line in lines if options.tail is None else lines[max(0, len(lines) - options.tail) :]:
        if options.json:
            print_json_line(line)
        else:
            print_row(format_line(line))
    return 0


def _lines_at_door(options: Options) -> list[dict[str, Any]] | None:
    """The lines from the worker that runs this process; None if the worker does not know the job."""
    if not at_door(options):
        return None
    from mam.door_client import NotHere

    try:
        return list(door_of(options).logs(named_job(options)))
    except (NotHere, StoreUnavailable):
        return None


def _logged(found: StoreLocation, config: Config, job: str) -> list[dict[str, Any]]:
    """The lines of the log. A job from the archive of another registry has no lines here; its events replace them."""
    try:
        return list(iter_lines(found.logs_dir, _resolved(found.logs_dir, job)))
    except UnknownJob:
        try:
            registry = open_located(found, config)
            known = registry.get(job)
        except MamError:
            known = None
        if known is None:
            raise
        return list(event_lines(JobWithEvents(job=known, events=registry.events(known.job_id))))


def _catch_up(found: StoreLocation, config: Config) -> None:
    """Update the log if possible. The log is readable without the store, which may be missing."""
    try:
        catch_up_log(found, config)
    except (MamError, OSError) as error:
        # Whether a server has a store is known only when it answers.
        if found.exists or (found.exists is None and not isinstance(error, StoreMissing)):
            say(f"the latest lines may be missing: {error}")


def _resolved(logs_dir: str, text: str) -> str:
    known = list_jobs(logs_dir)
    return only_match(text[:80], [job_id for job_id in known if text and job_id.startswith(text)], logs_dir)


def _list(logs_dir: str, *, as_json: bool) -> int:
    rows = (_row(logs_dir, job_id) for job_id in list_jobs(logs_dir))
    if as_json:
        print_json_array(rows)
        return 0
    for row in rows:
        print_row(
            *(str(row[name]) for name in ("job_id", "status", "agent", "agent_session")), first_line(row["prompt"])
        )
    return 0


def _row(logs_dir: str, job_id: str) -> dict[str, Any]:
    meta = read_meta(logs_dir, job_id) or {}
    format_line = {name: meta.get(name) or "" for name in ("agent", "agent_session", "created_at", "prompt")}
    return {"job_id": job_id, "status": read_status(logs_dir, job_id) or "unknown", **format_line}
