"""Which generation of each session counts in a files store: one small file, and the claims that an older one holds.

The file is replaced before the jobs are moved. Killed between the two, the older generation can claim no more, and its
jobs are moved by the next word of the one that counts.
"""

from __future__ import annotations

import json
import os

from mam.errors import BadRecord, StoreUnavailable, UnknownJob
from mam.jobs.generation import Generations, announced, displaced
from mam.stores.beside import replace_whole
from mam.stores.files.book import Book
from mam.stores.files.drafts import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

NAME = "generations"


def announce(book: Book, agent_id: str, generation_id: str) -> list[Job]:
    """The jobs that it takes from its predecessor."""
    path = os.path.join(book.home, NAME)
    known = read_generations(book.home)
    new = announced(known.get(agent_id), agent_id, generation_id)
    if new is not known.get(agent_id):
        replace_whole(path, {name: one.as_dict() for name, one in {**known, agent_id: new}.items()})
    return _displace(book, agent_id, generation_id)


def _displace(book: Book, agent_id: str, generation_id: str) -> list[Job]:
    moment = book.clock.now()
    steps = []
    for job_id in book.index.held_by_others(agent_id, generation_id):
        try:
            job = book.load(job_id)
        except (BadRecord, UnknownJob):
            continue  # moved when its file has been mended and this is said again
        steps.append(Step(before=job, change=displaced(job, agent_id, generation_id, moment)))
    book.commit(steps)
    return [step.change.job for step in steps if step.change.lines]


def read_generations(home: str) -> dict[str, Generations]:
    """Unlike a pause, this must not be forgotten with a file that somebody spoiled: an old generation would be let in
    again."""
    path = os.path.join(home, NAME)
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
        return {agent_id: _generations(one) for agent_id, one in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        why = "cannot be read, so that no session can claim here; put back a copy, or remove it to begin anew"
        raise StoreUnavailable(store=path, problem=why) from None


def _generations(fields: dict[str, object]) -> Generations:
    current, superseded = fields["current"], fields["superseded"]
    if not isinstance(current, str) or not isinstance(superseded, list):
        raise TypeError(current)
    return Generations(current=current, superseded=tuple(superseded))
