"""Running git where its own settings may be hostile: argv, no shell, no question, a limit on time and output.

Every git of mam is started here, with the guards of `git_guards`. What cannot be avoided: git itself reads the
repository's objects, index and configuration, so a fault in git is a fault here.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time

from mam.machine.environment import find_program
from mam.util.frozen import Frozen
from mam.work.git.guards import FIXED, NO_TRANSPORT, TRANSPORTS, environment, neutralising_settings, service_command
from mam.work.host_checks import reports_shortage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from mam.work.git.guards import Pairs

QUICK_SECONDS = 60.0
LONG_SECONDS = 600.0
OUTPUT_LIMIT = 1 << 20
_ERROR_LIMIT = 1 << 14


class GitFailed(Exception):
    """One line for the person who reads the job's record."""

    def reports_shortage(self) -> bool:
        """Whether the machine lacked something. Of a file that it could not write git does not say why."""
        return reports_shortage(str(self)) or str(self).startswith("unable to write ")


class Git(Frozen):
    """One repository, spoken to from one directory."""

    where: tuple[str, ...]
    """`-C directory` to look for the repository, or `--git-dir=… --work-tree=…` when it is known."""
    settings: Pairs = FIXED
    transports: str = NO_TRANSPORT
    """The transports that it may use."""
    keep_open: tuple[int, ...] = ()
    """Descriptors that git holds for as long as it runs: the lock of the place that it works on."""

    def text(
        self, *words: str, seconds: float = QUICK_SECONDS, limit: int = OUTPUT_LIMIT, given: str | None = None
    ) -> str:
        """What git prints when it reads `given`; GitFailed when it fails, takes too long or says too much."""
        code, output, errors = self._run(words, seconds, limit, given)
        if code:
            raise GitFailed(_last_line(errors) or f"git {words[0]} ended with {code}")
        return output

    def path(self, *words: str) -> str:
        """The one path that git prints, whatever characters it has."""
        return self.text(*words).removesuffix("\n")

    def succeeds(self, *words: str) -> bool:
        return self._run(words, QUICK_SECONDS, OUTPUT_LIMIT)[0] == 0

    def _run(
        self, words: tuple[str, ...], seconds: float, limit: int, given: str | None = None
    ) -> tuple[int, str, str]:
        environ = environment(os.environ, self.settings, self.transports)
        program = find_program("git", environ)
        if program is None:
            raise GitFailed("git is not on PATH")
        argv = [program, "--no-pager", "--literal-pathspecs", *self.where, *words]
        try:
            with _readable(given) as read:
                process = subprocess.Popen(
                    argv, env=environ, cwd="/", stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    pass_fds=self.keep_open, start_new_session=True,
                )  # fmt: skip
        except (OSError, ValueError) as error:
            raise GitFailed(f"git cannot be started: {error}") from None
        with process:
            return _collect(process, words[0], seconds, limit)


def discover(directory: str, keep_open: tuple[int, ...] = ()) -> Git:
    """The repository that holds a directory of the user's."""
    return _guarded(Git(where=("-C", directory), keep_open=keep_open))


def at(git_directory: str, work_tree: str | None = None, keep_open: tuple[int, ...] = ()) -> Git:
    """A repository that is known. Its work tree may be an agent's, whose `.git` could by now lead anywhere."""
    where = [f"--git-dir={git_directory}"]
    if work_tree is not None:
        where = ["-C", work_tree, *where, f"--work-tree={work_tree}"]
    return _guarded(Git(where=tuple(where), keep_open=keep_open))


def with_transports(git: Git) -> Git:
    """For a repository whose settings only mam writes: it may fetch and push by the ways that run nothing but git and
    ssh, with the user's own credentials, and without asking anybody."""
    return git.replace(transports=TRANSPORTS)


def service_option(service: str, path: str) -> str:
    """The option of a fetch or push that guards the repository at the other end, a directory here."""
    inner = os.path.join(path, ".git")
    settings = at(inner if os.path.lexists(inner) else path).settings
    return f"--{service}={service_command(service, settings)}"


def _guarded(git: Git) -> Git:
    listed = git.text("config", "-z", "--show-scope", "--list")
    return git.replace(settings=(*FIXED, *neutralising_settings(listed)))


def _readable(given: str | None) -> IO[bytes]:
    """A file to read from: a pipe would have to be filled while git already answers."""
    if given is None:
        return open(os.devnull, "rb")
    from tempfile import TemporaryFile

    file = TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(given.encode(errors="surrogateescape"))
    file.seek(0)
    return file


def _collect(process: subprocess.Popen[bytes], word: str, seconds: float, limit: int) -> tuple[int, str, str]:
    """All output up to a limit. More than that, or more time than given, ends git and what it started."""
    assert process.stdout is not None
    assert process.stderr is not None
    ends = time.monotonic() + seconds
    output, errors = bytearray(), bytearray()
    kept = {process.stdout.fileno(): output, process.stderr.fileno(): errors}
    poll = select.poll()
    for descriptor in kept:
        poll.register(descriptor, select.POLLIN)
    try:
        while kept:
            found = poll.poll(max(0.0, ends - time.monotonic()) * 1000)
            if not found:
                raise GitFailed(f"git {word} was not done within {seconds:.0f} s")
            for descriptor, _ in found:
                part = os.read(descriptor, 1 << 16)
                kept[descriptor] += part
                if not part:
                    poll.unregister(descriptor)
                    del kept[descriptor]
            del errors[:-_ERROR_LIMIT]
            if len(output) > limit:
                raise GitFailed(f"git {word} has too much to say")
        code = process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own, and was not waited for yet
        raise
    return code, output.decode(errors="surrogateescape"), errors.decode(errors="replace")


def _last_line(text: str) -> str:
    """git says what is wrong behind `fatal:`, and advice after it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (fatal or lines or [""])[0].removeprefix("fatal: ").removeprefix("error: ")[:400]
