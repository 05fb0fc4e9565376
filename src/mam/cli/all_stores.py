"""Every store that this user has opened: those that can be read, and what became of the others."""

from __future__ import annotations

import os
from itertools import islice

from mam.cli.args.job_selection import check_label, query_of
from mam.cli.render.streams import person_reads, put, put_json_array, say
from mam.cli.render.text import first_line
from mam.config.settings import load_config
from mam.errors import BadInput, MamError, StoreMissing
from mam.location.stores import FILES, locate, open_located
from mam.util.frozen import Frozen
from mam.util.state_dir import known_stores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.cli.args.parser import Options
    from mam.jobs.record import Job
    from mam.registry import Registry

LOCK_SECONDS = 2.0
"""One store that somebody sits on must not hold up the others for long."""


class Place(Frozen):
    address: str
    registry: Registry | None
    problem: str | None = None

    @property
    def shown(self) -> str:
        return shortened(self.address)


def shortened(address: str) -> str:
    home = os.path.expanduser("~")
    return f"~{address[len(home) :]}" if home != "/" and address.startswith(f"{home}/") else address


def places(options: Options) -> Iterator[Place]:
    if options.store is not None or options.registry_dir is not None:
        raise BadInput(why="--everywhere means all stores; leave --store out")
    check_label(options)
    config = load_config()
    config = config.replace(lock_wait_seconds=min(config.lock_wait_seconds, LOCK_SECONDS))
    addresses = known_stores()
    if not addresses:
        say("no store has been opened yet; `mam init` makes one, and so does the first `mam register`")
    for address in addresses:
        try:
            located = locate(address, None, config)
            if located.kind == FILES and not located.exists:
                raise StoreMissing(store=address)
            yield Place(address=address, registry=open_located(located, config))
        except StoreMissing:
            yield Place(address=address, registry=None, problem="gone; `mam doctor --fix` forgets it")
        except MamError as error:
            yield Place(address=address, registry=None, problem=_problem(address, error))


def _problem(address: str, error: MamError) -> str:
    """What is wrong with a store, without its name, which stands before it wherever it is told."""
    return str(error).removeprefix(f"{address}: ")


def list_everywhere(options: Options, most: int | None) -> int:
    if options.json:
        put_json_array(_as_json(place, options) for place in places(options))
        return 0
    for number, place in enumerate(places(options)):
        try:
            if person_reads():
                _table(place, options, most, first=number == 0)
            elif place.registry is None:
                say(f"{place.address}: {place.problem}")
            else:
                for job in islice(_jobs(place.registry, options), most):
                    put(place.address, job.job_id, job.status, job.agent, job.agent_session, job.created_at,
                        first_line(job.prompt))  # fmt: skip
        except MamError as error:
            say(f"{place.address}: {_problem(place.address, error)}")
    return 0


def _jobs(registry: Registry, options: Options) -> Iterator[Job]:
    return registry.select(query_of(options, registry))


def _as_json(place: Place, options: Options) -> dict[str, Any]:
    jobs, problem = [], place.problem
    if place.registry is not None:
        try:
            jobs = [job.to_json() for job in _jobs(place.registry, options)]
        except MamError as error:
            problem = _problem(place.address, error)
    return {"store": place.address, "problem": problem, "jobs": jobs}


def _table(place: Place, options: Options, most: int | None, *, first: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from mam.cli.render.table import put_jobs
    from mam.cli.render.text import one_line
    from mam.cli.verbs.list import how_many_more

    console = Console(highlight=False)
    if not first:
        console.print()
    console.print(Text(one_line(place.shown), style="bold"), no_wrap=True, overflow="ellipsis", crop=True)
    if place.registry is None:
        console.print(Text(f"  {one_line(place.problem or '')}", style="yellow"))
        return
    store, jobs = place.registry.store, _jobs(place.registry, options)
    shown = list(islice(jobs, most))
    if shown:
        put_jobs(shown, store.clock.now(), store.pauses())
        more = how_many_more(jobs)
        if more:
            console.print(Text(more, style="dim"))
    else:
        console.print(Text("  no job matches", style="dim"))


def watch_everywhere(options: Options, *, lines: bool) -> int:
    found = list(places(options))
    if lines:
        from mam.cli.watch.lines import Lines, follow

        for place in found:
            if place.registry is None:
                say(f"{place.address}: {place.problem}")
        return follow(
            [
                Lines(place.registry, query_of(options, place.registry), as_json=options.json, named=True)
                for place in found
                if place.registry is not None
            ]
        )
    from mam.cli.watch.everywhere import Overview

    return Overview(found, lambda registry: query_of(options, registry)).run()
