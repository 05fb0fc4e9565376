"""What verbs share on the command line: the parser, the store, which job, which attempt."""

from __future__ import annotations

import os

from mam.cli.output import say
from mam.cli.parser import Parser
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mam.cli.parser import Options
    from mam.registry import Registry


def read_options(verb: str, module: ModuleType, arguments: list[str]) -> Options:
    """The options of one verb, and those that every verb has."""
    parser = Parser(verb, module.__doc__ or "")
    module.add_arguments(parser)
    shared = parser.add_argument_group("for every verb")
    shared.add_argument("--store", metavar="ADDRESS", help="where the jobs are; default: MAM_STORE, else the nearest")
    shared.add_argument("--registry-dir", metavar="DIR", help="the same, for a directory of files")
    shared.add_argument("--json", action="store_true", help="print JSON, complete and for programs")
    return parser.read(arguments)


def number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(why=f"{text[:40]!r} is not a whole number") from None


def registry_of(options: Options, *, create: bool = False) -> Registry:
    from mam.config import load_config
    from mam.workspace import open_registry

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


def one_job(options: Options) -> str:
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
    # A beginning of the own id may still be another job's whole id.
    if job != own and not (own.startswith(job) and registry.resolve(job) == own):
        return None
    if not held.isascii() or not held.isdigit():
        raise BadInput(why=f"MAM_ATTEMPT is {held[:40]!r}, which is not a number")
    return int(held)


def _named(word: str | None, job: str | None) -> str | None:
    if word is not None and job is not None and word != job:
        raise BadInput(why=f"two jobs were named, {word[:80]} and {job[:80]}; this verb takes one")
    return word if word is not None else job


def _given(job: str | None) -> str:
    if job is None:
        raise BadInput(why="which job? Give its id, or a unique beginning of it; `mam list` shows them")
    return job
