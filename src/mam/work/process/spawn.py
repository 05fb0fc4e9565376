"""Starts an agent: argv without a shell, the given environment, a session of its own, nothing inherited."""

from __future__ import annotations

import errno
import os
import signal

from mam.machine.environment import find_program
from mam.work.host_checks import is_resource_errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The agent must not inherit signals that Python ignores (SIGPIPE) or that the keeper handles.
_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class CannotStart(Exception):
    """One line for the person who reads the job's record."""

    is_machine_error = False


def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str, streams: tuple[int, int, int]) -> int:
    """The pid of the agent, which has stdin, stdout and stderr from `streams` and no other descriptor.

    Python's descriptors close on exec. posix_spawn takes no working directory, so the caller, which has one thread,
    changes to it and back.
    """
    try:
        program = _program(argv, env, cwd)
        return os.posix_spawn(
            program,
            list(argv),
            dict(env),
            file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(streams)],
            setsid=True,
            setsigmask=[],
            setsigdef=_SIGNALS,
        )
    except OSError as error:
        failure = CannotStart(_sentence(error, argv[0]))
        failure.is_machine_error = is_resource_errno(error.errno)
        raise failure from None
    except ValueError as error:
        raise CannotStart(f"the command line or the environment is invalid: {error}") from None
    finally:
        os.chdir("/")


def _program(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str:
    """The path of the program, according to the agent's own PATH."""
    try:
        os.chdir(cwd)
    except OSError as error:
        raise CannotStart(f"cannot work in {cwd!r}: {os.strerror(error.errno or 0)}") from None
    if not argv or not argv[0]:
        raise CannotStart("there is no command to run")
    if "/" in argv[0]:
        return argv[0]
    if (found := find_program(argv[0], env)) is not None:
        return found
    if (unfit := find_program(argv[0], env, fit=os.path.isfile)) is not None:
        raise CannotStart(f"{unfit!r} is not executable")
    raise CannotStart(f"command not found: {argv[0]!r}")


def _sentence(error: OSError, command: str) -> str:
    match error.errno:
        case errno.ENOENT if os.path.exists(command) or "/" not in command:
            return f"cannot run {command!r}: the program named in its first line does not exist"
        case errno.ENOENT | errno.ENOTDIR:
            return f"command not found: {command!r}"
        case errno.EACCES | errno.EPERM | errno.EISDIR:
            return f"{command!r} is not executable"
        case errno.ENOEXEC:
            return f"{command!r} is not a program: it has no #! line, or is made for another machine"
        case errno.E2BIG:
            return "the command line and the environment are too long for the system; a long prompt belongs on stdin"
        case errno.EAGAIN | errno.ENOMEM:
            return f"cannot start {command!r}: no more processes or memory for this user"
        case _:
            return f"cannot run {command!r}: {os.strerror(error.errno or 0)}"
