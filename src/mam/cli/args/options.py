"""Options that verbs share: the store, the job, the attempt."""

from __future__ import annotations

import os

from mam.cli.args.parser import Parser
from mam.cli.render.streams import say
from mam.errors import BadInput, StoreMissing, StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mam.cli.args.parser import Options
    from mam.config.settings import Config
    from mam.door_client import DoorClient
    from mam.jobs.acts import Fence
    from mam.registry import Registry

    AnyRegistry = Registry | DoorClient


def parse_options(verb: str, module: ModuleType, arguments: list[str]) -> Options:
    """Parse the options of a verb and those that every verb has."""
    parser = Parser(verb, module.__doc__ or "")
    module.add_arguments(parser)
    shared = parser.add_argument_group("for every verb")
    shared.add_argument("--store", metavar="ADDRESS", help="the store; default: MAM_STORE, otherwise the nearest")
    shared.add_argument("--registry-dir", metavar="DIR", help="a store of files, by its directory")
    shared.add_argument("--json", action="store_true", help="print JSON, also for errors")
    options = parser.read(arguments)
    if "MAM_SESSION_DIR" in os.environ and not os.environ.get("MAM_JOB_ID"):
        _find_door_of_session(options)
    return options


def _find_door_of_session(options: Options) -> None:
    """A live session runs many jobs, so its environment names none. If the command names the current job of the
    session, it uses the door of the worker; for any other job it uses the store."""
    words = [getattr(options, "word", None), getattr(options, "job", None), *getattr(options, "words", ())]
    named = [word for word in words if word]
    if not named or not hasattr(options, "attempt"):
        return
    from mam.door_client import decode_json

    try:
        with open(os.path.join(os.environ["MAM_SESSION_DIR"], "current.json"), encoding="utf-8") as file:
            page = decode_json(file.read())
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


def registry_of(options: Options, *, create: bool = False, config: Config | None = None) -> Registry:
    """The registry over the store that the options name."""
    try:
        return _open_store(options, create=create, config=config)
    except StoreMissing:
        if not at_door(options):
            raise
        from mam.door_client import not_served

        raise not_served() from None


def job_registry(options: Options) -> AnyRegistry:
    """For the commands of an agent about its job: its worker's door, else the registry over the store."""
    if not at_door(options):
        return _open_store(options)
    try:
        return door_of(options)
    except StoreUnavailable as gone:
        return _instead_of_door(options, gone)


def at_door(options: Options) -> bool:
    """Whether a worker started this process and listens to it, and the options name no other store."""
    named = options.store is not None or options.registry_dir is not None
    return bool(os.environ.get("MAM_SOCKET") and os.environ.get("MAM_JOB_ID")) and not named


def door_of(options: Options) -> DoorClient:
    from mam.door_client import DoorClient

    return DoorClient(os.environ["MAM_SOCKET"], lambda: _open_store(options), whole=options.json)


def _instead_of_door(options: Options, gone: StoreUnavailable) -> Registry:
    """The worker is gone, but its store may have the job. No store is created: the job would not be in it."""
    try:
        registry = _open_store(options)
    except StoreMissing:
        raise gone from None
    say(f"{gone} Using the store {registry.store.address}")
    return registry


def _open_store(options: Options, *, create: bool = False, config: Config | None = None) -> Registry:
    from mam.location.stores import open_registry

    if config is None:
        from mam.config.settings import load_config

        config = load_config()

    def announce(address: str) -> None:
        say(f"created a store at {address}")

    return open_registry(options.store, options.registry_dir, config, create=create, announce=announce)


def add_job(parser: Parser, *, own: bool = False) -> None:
    default = "; default: MAM_JOB_ID" if own else ""
    parser.add_argument("word", nargs="?", metavar="JOB", help=f"the job's id, or a unique prefix of it{default}")
    parser.add_argument("--job", metavar="JOB", help="the job, as JOB")


def add_attempt(parser: Parser) -> None:
    parser.add_argument(
        "--attempt", type=number, metavar="N", help="write only if this attempt holds the job (otherwise exit 4)"
    )


def named_job(options: Options) -> str:
    """The job that the options name."""
    return _given(_named(options.word, options.job))


def own_job(options: Options) -> str:
    """The job that the options name, otherwise the job of this process."""
    named = _named(options.word, options.job)
    # An empty name is a script's unset variable; it must not select the own job.
    return _given(named if named is not None else os.environ.get("MAM_JOB_ID") or None)


def own_attempt(options: Options, registry: AnyRegistry, job: str) -> int | None:
    """The attempt of the options, otherwise MAM_ATTEMPT if the job is that of this process."""
    own, held = os.environ.get("MAM_JOB_ID"), os.environ.get("MAM_ATTEMPT")
    if options.attempt is not None or not own or not held:
        given: int | None = options.attempt
        return given
    if not _is_own(registry, job):
        return None
    if not held.isascii() or not held.isdigit():
        raise BadInput(why=f"MAM_ATTEMPT is {held[:40]!r} and not a number")
    return int(held)


def own_fence(options: Options, registry: AnyRegistry, job: str) -> Fence:
    """The attempt of the options or of this process, with MAM_CLAIM if that belongs to it."""
    return fence_of(own_attempt(options, registry, job), registry, job)


def fence_of(attempt: int | None, registry: AnyRegistry, job: str) -> Fence:
    """MAM_CLAIM is the claim id of the job MAM_JOB_ID under the attempt MAM_ATTEMPT only."""
    claim_id, held = os.environ.get("MAM_CLAIM") or None, os.environ.get("MAM_ATTEMPT", "")
    if claim_id is not None and not (attempt is not None and held == str(attempt) and _is_own(registry, job)):
        claim_id = None
    return {"attempt": attempt, "claim_id": claim_id}


def _is_own(registry: AnyRegistry, job: str) -> bool:
    """Whether the job is that of this process. A prefix of its id may be the full id of another job."""
    own = os.environ.get("MAM_JOB_ID", "")
    return bool(own) and (job == own or (own.startswith(job) and registry.resolve(job) == own))


def _named(word: str | None, job: str | None) -> str | None:
    if word is not None and job is not None and word != job:
        raise BadInput(why=f"this verb takes one job, not two ({word[:80]} and {job[:80]})")
    return word if word is not None else job


def _given(job: str | None) -> str:
    if job is None:
        raise BadInput(why="give the id of a job, or a unique prefix of it; `mam list` prints the ids")
    return job
