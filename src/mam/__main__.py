"""The command `mam`: runs a verb's module and turns an error into one message and an exit code.

Each verb imports what it needs, because an agent's hooks run this file at every event.
"""

from __future__ import annotations

import os
import sys

from mam.errors import BadInput, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

FIRST_VERBS = ("run", "register", "worker", "watch", "list", "show", "wait", "result", "output", "logs")
MORE_VERBS = (
    "get", "pick", "complete", "fail", "status", "heartbeat", "release", "cancel", "retry", "continue", "edit", "seen",
    "diff", "apply", "questions", "answer", "ask", "rules",
    "pause", "resume", "publish", "subscribe", "relay", "hook", "broker", "explain", "workspaces", "trust", "where",
    "init", "artifacts", "prune", "migrate", "adopt", "rebuild", "config", "doctor", "completion", "stats", "demo",
    "agents", "workers", "serve", "token", "push", "mcp", "plugin", "skill", "inbox", "service", "admin",
)  # fmt: skip
UNLISTED_VERBS = ("brief", "publish_event", "job_subscriber")
"""Old names that still work; the last two are the scripts of these names."""
VERBS = FIRST_VERBS + MORE_VERBS + UNLISTED_VERBS
INTERRUPTED = 130
BROKEN_PIPE = 141
UNREACHABLE = 9


def main() -> None:
    """The console script. It skips the interpreter's shutdown, which costs milliseconds."""
    _use_utf8()
    code = run(sys.argv[1:])
    os._exit(_flush(code))


def run(argv: list[str]) -> int:
    """Run one command and return its exit code; never raises."""
    try:
        return _dispatch(argv)
    except MamError as error:
        from mam.cli.render.streams import say_error

        say_error(error, as_json=_wants_json(argv))
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        return _fail(argv, "SystemError", _system_message(error), UNREACHABLE)
    except Exception as error:
        return _report_bug(argv, error)


def load(verb: str) -> ModuleType:
    module: ModuleType = __import__(f"mam.cli.verbs.{verb}", fromlist=["run"])
    return module


def _dispatch(argv: list[str]) -> int:
    leading, rest = _leading_options(argv)
    if rest[:1] == ["help"]:
        rest = [*rest[1:2], "--help"]
    if not rest or rest[0] in ("--help", "-h"):
        return _help()
    if rest[0] in ("--version", "-V"):
        return _version()
    verb, *arguments = rest
    if verb not in VERBS:
        raise BadInput(why=_unknown_verb(verb))
    if verb == "hook" and "--help" not in arguments and "-h" not in arguments:
        # A hook never fails, whatever its arguments: it must not disturb the agent that runs it.
        return int(load(verb).run_words(leading + arguments))
    from mam.cli.args.options import parse_options

    module = load(verb)
    code: int = module.run(parse_options(verb, module, leading + arguments))
    return code


def _leading_options(argv: list[str]) -> tuple[list[str], list[str]]:
    """The shared options before the verb, and the rest."""
    at = 0
    while at < len(argv):
        name, equals, _ = argv[at].partition("=")
        if name in ("--store", "--registry-dir"):
            at += 1 if equals else 2
        elif argv[at] == "--json":
            at += 1
        else:
            break
    if at > len(argv):
        raise BadInput(why=f"{argv[-1]} needs a value: `mam {argv[-1]} ADDRESS VERB`")
    return argv[:at], argv[at:]


def _help() -> int:
    from mam.cli.args.help import overview

    sys.stdout.write(overview({verb: load(verb).__doc__ or "" for verb in FIRST_VERBS + MORE_VERBS}, FIRST_VERBS))
    return 0


def _version() -> int:
    from mam import __version__

    sys.stdout.write(f"mam {__version__}\n")
    return 0


def _unknown_verb(verb: str) -> str:
    from mam.cli.render.text import nearest, one_line

    if verb.startswith("-"):
        return f"{one_line(verb)} is not an option of mam itself; options of a verb follow the verb"
    return f"{one_line(verb)} is not a verb of mam{nearest(verb, VERBS)}; `mam --help` lists the verbs"


def _wants_json(argv: list[str]) -> bool:
    """Also when the arguments could not be parsed. Words behind -- belong to another command."""
    return "--json" in (argv[: argv.index("--")] if "--" in argv else argv)


def _system_message(error: OSError) -> str:
    what = error.strerror or type(error).__name__
    return f"{error.filename}: {what}" if error.filename else what


def _report_bug(argv: list[str], error: Exception) -> int:
    if os.environ.get("MAM_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    name = type(error).__name__
    message = f"this is a bug in mam: {name}: {error}. MAM_DEBUG=1 shows the traceback; please report it."
    return _fail(argv, "Bug", message, 1)


def _fail(argv: list[str], kind: str, message: str, exit_code: int) -> int:
    """Report an error that is not a MamError."""
    from mam.cli.render.streams import say, say_error_object

    if _wants_json(argv):
        say_error_object(kind, message, exit_code)
    else:
        say(message)
    return exit_code


def _use_utf8() -> None:
    """Records are UTF-8 in every locale."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]


def _flush(code: int) -> int:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        return _fail(sys.argv[1:], "SystemError", f"cannot write the output: {_system_message(error)}", UNREACHABLE)
    return code


if __name__ == "__main__":
    main()
