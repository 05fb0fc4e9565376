"""What verbs share on the command line: the parser, the store, which job, which claim."""

from __future__ import annotations

import os

from mam.cli.args.parser import Parser
from mam.cli.render.streams import say
from mam.errors import BadInput, StoreMissing, StoreUnavailable, UnknownJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from mam.cli.args.parser import Options
    from mam.door_client import DoorRegistry
    from mam.jobs.acts import Fence
    from mam.registry import Registry


def parse_options(verb: str, module: ModuleType, arguments: list[str]) -> Options:
    """The options of one verb, and those that every verb has."""
    parser = Parser(verb, module.__doc__ or "")
    module.add_arguments(parser)
    shared = parser.add_argument_group("for every verb")
    shared.add_argument("--store", metavar="ADDRESS", help="where the jobs are; default: MAM_STORE, else the nearest")
    shared.add_argument("--registry-dir", metavar="DIR", help="the same, for a directory of files")
    shared.add_argument("--json", action="store_true", help="print JSON, complete and for programs")
    options = parser.read(arguments)
    if "MAM_SESSION_DIR" in os.environ and not os.environ.get("MAM_JOB_ID"):
        _find_door_of_session(options)
    return options


def _find_door_of_session(options: Options) -> None:
    """In a live session jobs come and go, so its environment names none. A job that is named, and that the session is
    at, has the door of the worker that serves it; a word about any other goes the ordinary way."""
    words = [getattr(options, "word", None), getattr(options, "job", None), *getattr(options, "words", ())]
    named = [word for word in words if word]
    if not named or not hasattr(options, "attempt"):
        return
    from mam.door_client import _decode

    try:
        with open(os.path.join(os.environ["MAM_SESSION_DIR"], "current.json"), encoding="utf-8") as file:
            page = _decode(file.read())
        at, own = page["job_id"], page["generation_id"] == os.environ.get("MAM_GENERATION")
        if own and page["turn"] in ("typing", "handed") and page["socket"] and any(map(at.startswith, named)):
            held = {"MAM_ATTEMPT": str(page["attempt"]), "MAM_CLAIM": str(page.get("claim_id") or "")}
            os.environ.update({"MAM_JOB_ID": at, **held, "MAM_SOCKET": page["socket"]})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return


def number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(why=f"{text[:40]!r} is not a whole number") from None


def registry_of(options: Options, *, create: bool = False) -> Registry:
    """The registry that the options mean: a worker's door for what runs inside a job, else the store's."""
    if not at_door(options):
        return _stored(options, create=create)
    try:
        return door_of(options)
    except StoreUnavailable as gone:
        return _instead_of_door(options, gone)


def at_door(options: Options) -> bool:
    """Whether this process was started by a worker that listens to it, and no other store was asked for."""
    named = options.store is not None or options.registry_dir is not None
    return bool(os.environ.get("MAM_SOCKET") and os.environ.get("MAM_JOB_ID")) and not named


def door_of(options: Options) -> DoorRegistry:
    from mam.door_client import DoorRegistry

    return DoorRegistry(os.environ["MAM_SOCKET"], lambda: _stored(options), whole=options.json)


def parent_fields(registry: Registry) -> dict[str, Any]:
    """What a job that is registered inside another one says about its parent. A door says that itself."""
    own = os.environ.get("MAM_JOB_ID")
    if not own:
        return {}
    from mam.config.settings import load_config
    from mam.door_client import DoorRegistry
    from mam.work.children import kinship

    if isinstance(registry, DoorRegistry):
        return {}
    try:
        parent = registry.get(own)
    except UnknownJob:
        say(f"the job of this process, {own[:80]}, is not in this store; the new one is not its child")
        return {}
    return kinship(parent, load_config().max_depth)


def _instead_of_door(options: Options, gone: StoreUnavailable) -> Registry:
    """The worker is gone; its store may know what became of the job. None is made: the job would not be in it."""
    try:
        registry = _stored(options)
    except StoreMissing:
        raise gone from None
    say(f"{gone} Using the store {registry.store.address}")
    return registry


def _stored(options: Options, *, create: bool = False) -> Registry:
    from mam.config.settings import load_config
    from mam.location.stores import open_registry

    def made(address: str) -> None:
        say(f"made a store at {address}")

    return open_registry(options.store, options.registry_dir, load_config(), create=create, announce=made)


def add_job(parser: Parser, *, own: bool = False) -> None:
    default = "; default: MAM_JOB_ID" if own else ""
    parser.add_argument("word", nargs="?", metavar="JOB", help=f"the job's id, or a unique beginning of it{default}")
    parser.add_argument("--job", metavar="JOB", help="the same")


def add_attempt(parser: Parser) -> None:
    parser.add_argument(
        "--attempt", type=number, metavar="N", help="only if this attempt still holds the job (exit 4 if not)"
    )


def named_job(options: Options) -> str:
    """The job that was named."""
    return _given(_named(options.word, options.job))


def own_job(options: Options) -> str:
    """The job that was named, else the one this process was started for."""
    named = _named(options.word, options.job)
    # An empty name is a script's empty variable; it must not become the own job.
    return _given(named if named is not None else os.environ.get("MAM_JOB_ID") or None)


def own_attempt(options: Options, registry: Registry, job: str) -> int | None:
    """The attempt that was named, else MAM_ATTEMPT if the job is the one this process was started for."""
    own, held = os.environ.get("MAM_JOB_ID"), os.environ.get("MAM_ATTEMPT")
    if options.attempt is not None or not own or not held:
        given: int | None = options.attempt
        return given
    if not _is_own(registry, job):
        return None
    if not held.isascii() or not held.isdigit():
        raise BadInput(why=f"MAM_ATTEMPT is {held[:40]!r}, which is not a number")
    return int(held)


def own_fence(options: Options, registry: Registry, job: str) -> Fence:
    """The attempt that was named, else the own one, with the claim id of MAM_CLAIM if that belongs to it."""
    return fence_of(own_attempt(options, registry, job), registry, job)


def fence_of(attempt: int | None, registry: Registry, job: str) -> Fence:
    """MAM_CLAIM names the claim only of the job MAM_JOB_ID under the attempt MAM_ATTEMPT."""
    claim_id, held = os.environ.get("MAM_CLAIM") or None, os.environ.get("MAM_ATTEMPT", "")
    if claim_id is not None and not (attempt is not None and held == str(attempt) and _is_own(registry, job)):
        claim_id = None
    return {"attempt": attempt, "claim_id": claim_id}


def _is_own(registry: Registry, job: str) -> bool:
    """Whether the job is the one this process was started for. A beginning of its id may still be another job's whole
    id."""
    own = os.environ.get("MAM_JOB_ID", "")
    return bool(own) and (job == own or (own.startswith(job) and registry.resolve(job) == own))


def _named(word: str | None, job: str | None) -> str | None:
    if word is not None and job is not None and word != job:
        raise BadInput(why=f"two jobs were named, {word[:80]} and {job[:80]}; this verb takes one")
    return word if word is not None else job


def _given(job: str | None) -> str:
    if job is None:
        raise BadInput(why="which job? Give its id, or a unique beginning of it; `mam list` shows them")
    return job
