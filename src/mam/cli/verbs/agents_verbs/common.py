"""Options that the subverbs of `mam agents` share: the agent and the generation."""

from __future__ import annotations

import os

from mam.agents.errors import AmbiguousName
from mam.agents.lookup import AMBIGUOUS, by_any, by_id, by_name, by_session
from mam.agents.names import check_agent_id
from mam.agents.open_directory import open_directory
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.lookup import Resolution
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord
    from mam.cli.args.parser import Options, Parser


def directory_of(options: Options) -> Directory:
    return open_directory(options.store, options.registry_dir)


def add_agent_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="AGENT", help="name or id of the agent; default: MAM_AGENT_ID")
    parser.add_argument("--id", metavar="ID", help="the id of the agent")
    parser.add_argument("--name", metavar="NAME", help="the name of the agent")
    parser.add_argument("--session", metavar="S", help="the tmux session of the agent")


def look_up(directory: Directory, options: Options) -> tuple[str, Resolution]:
    """Who was named, and what the directory says about that."""
    ways = ((options.word, by_any), (options.id, by_id), (options.name, by_name), (options.session, by_session))
    given = [(text, way) for text, way in ways if text is not None]
    if len(given) > 1:
        raise BadInput(why="give one of AGENT, --id, --name and --session")
    if given:
        text, way = given[0]
        return text, way(directory, text)
    own = os.environ.get("MAM_AGENT_ID")
    if not own:
        raise BadInput(why="give the name or the id of an agent; `mam agents list` prints them")
    return own, by_id(directory, own)


def agent_id_of(directory: Directory, options: Options) -> str:
    """The id of an agent whose record may be out of date; without a record, the default id of the name."""
    name, answer = look_up(directory, options)
    if answer.kind == AMBIGUOUS:
        raise AmbiguousName(name=name[:80], candidates=list(answer.candidates))
    if answer.record is not None:
        return answer.record.agent_id
    from mam.agents.names import default_agent_id

    if options.id is not None or (options.word is None and options.name is None):
        return check_agent_id(options.id or name)
    return default_agent_id(name)


def add_generation(parser: Parser) -> None:
    parser.add_argument(
        "--generation",
        metavar="G",
        help="the generation that must own the record (otherwise exit 4); default: MAM_GENERATION",
    )


def own_generation(options: Options) -> str:
    generation = options.generation if options.generation is not None else os.environ.get("MAM_GENERATION")
    if not generation:
        raise BadInput(why="give --generation; `mam agents show` prints the generation of the record")
    return check_agent_id(generation, "generation")


def print_answer(answer: Resolution) -> None:
    record = None if answer.record is None else answer.record.to_json()
    print_json({"answer": answer.kind, "reason": answer.reason, "candidates": answer.candidates, "record": record})


def announce(options: Options, record: AgentRecord) -> None:
    """Announce the generation in every store where the agent has claimed; name the stores that mam could not reach."""
    if not record.mam.stores:
        return
    from mam.agents.generations import announce_in_stores
    from mam.config.settings import load_config
    from mam.location.stores import locate

    config = load_config()
    try:
        here = locate(options.store, options.registry_dir, config)
    except MamError:
        here = None  # nothing is asked of the store of this place itself
    for visit in announce_in_stores(record, config, here):
        if visit.problem is not None:
            say(f"{visit.store} does not know the new generation until its first claim there ({visit.problem})")
        elif visit.moved:
            jobs = "1 job" if len(visit.moved) == 1 else f"{len(visit.moved)} jobs"
            say(f"{jobs} of the previous generation can be claimed again in {visit.store}")


def print_started(options: Options, record: AgentRecord) -> int:
    announce(options, record)
    if record.mam.companion is None:
        say("the companion did not start, so nothing renews the lease; `mam agents adopt` starts it again")
    if options.json:
        print_json(record.to_json())
    else:
        print_row(record.agent_id, record.generation_id)
    return 0
