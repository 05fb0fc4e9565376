"""Runs git where the repository's settings may be hostile: argv without a shell, no prompts, limited time and output.

Every git command of mam starts here, with the guards of `guards.py`. git itself still reads the repository's objects,
index and configuration, so a bug in git affects mam.
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
    from collections.abc import Iterator
    from typing import IO

    from mam.work.git.guards import Pairs

QUICK_SECONDS = 60.0
LONG_SECONDS = 600.0
OUTPUT_LIMIT = 1 << 20
_ERROR_LIMIT = 1 << 14
_PART = 1 << 16


class GitFailed(Exception):
    """One line for the person who reads the job's record."""

    def reports_shortage(self) -> bool:
        """Whether the machine lacked something. git does not say why it could not write a file."""
        return reports_shortage(str(self)) or str(self).startswith("unable to write ")


class Git(Frozen):
    """One repository, addressed from one directory."""

    where: tuple[str, ...]
    """`-C directory` to search for the repository, or `--git-dir=… --work-tree=…` if it is known."""
    settings: Pairs = FIXED
    transports: str = NO_TRANSPORT
    """The transports that git may use."""
    keep_open: tuple[int, ...] = ()
    """Descriptors that git inherits: the lock of the workspace."""
    index: str | None = None
    """An index of mam's own, in place of the repository's."""

    def text(
        self, *words: str, seconds: float = QUICK_SECONDS, limit: int = OUTPUT_LIMIT, given: str | None = None
    ) -> str:
        """git's output, with `given` as its input. Raises GitFailed if git fails, takes too long or prints too much."""
        code, output, errors = self._run(words, seconds, limit, given)
        if code:
            raise GitFailed(_last_line(errors) or f"git {words[0]} ended with {code}")
        return output

    def path(self, *words: str) -> str:
        """The one path that git prints, whatever characters it contains."""
        return self.text(*words).removesuffix("\n")

    def outcome(self, *words: str) -> tuple[int, str]:
        """git's exit code and output, for commands whose code is an answer."""
        return self._run(words, LONG_SECONDS, OUTPUT_LIMIT)[:2]

    def stream(self, *words: str) -> Iterator[bytes]:
        """git's output in parts, however long. git ends when the reader stops. Raises GitFailed if git fails."""
        from tempfile import TemporaryFile

        with TemporaryFile() as errors, self._start(words, subprocess.DEVNULL, errors) as process:
            assert process.stdout is not None
            try:
                while part := os.read(process.stdout.fileno(), _PART):
                    yield part
                code = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            errors.seek(0)
            if code:
                said = _last_line(errors.read(_ERROR_LIMIT).decode(errors="replace"))
                raise GitFailed(said or f"git {words[0]} ended with {code}")

    def succeeds(self, *words: str) -> bool:
        return self._run(words, QUICK_SECONDS, OUTPUT_LIMIT)[0] == 0

    def _run(
        self, words: tuple[str, ...], seconds: float, limit: int, given: str | None = None
    ) -> tuple[int, str, str]:
        with _readable(given) as read:
            process = self._start(words, read, subprocess.PIPE)
        with process:
            return _collect(process, words[0], seconds, limit)

    def _start(self, words: tuple[str, ...], read: int | IO[bytes], errors: int | IO[bytes]) -> subprocess.Popen[bytes]:
        environ = self._environment()
        program = find_program("git", environ)
        if program is None:
            raise GitFailed("git is not on PATH")
        argv = [program, "--no-pager", "--literal-pathspecs", *self.where, *words]
        try:
            return subprocess.Popen(
                argv, env=environ, cwd="/", stdin=read, stdout=subprocess.PIPE, stderr=errors,
                pass_fds=self.keep_open, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise GitFailed(f"git cannot be started: {error}") from None

    def _environment(self) -> dict[str, str]:
        environ = environment(os.environ, self.settings, self.transports)
        return environ if self.index is None else {**environ, "GIT_INDEX_FILE": self.index}


def discover(directory: str, keep_open: tuple[int, ...] = ()) -> Git:
    """The repository that contains one of the user's directories."""
    return _guarded(Git(where=("-C", directory), keep_open=keep_open))


def at(git_directory: str, work_tree: str | None = None, keep_open: tuple[int, ...] = ()) -> Git:
    """A known repository. Its work tree may be an agent's, whose `.git` may point anywhere by now."""
    where = [f"--git-dir={git_directory}"]
    if work_tree is not None:
        where = ["-C", work_tree, *where, f"--work-tree={work_tree}"]
    return _guarded(Git(where=tuple(where), keep_open=keep_open))


def with_transports(git: Git) -> Git:
    """For a repository whose settings only mam writes: it may fetch and push over transports that run only git and ssh,
    with the user's credentials and without prompts."""
    return git.replace(transports=TRANSPORTS)


def service_option(service: str, path: str) -> str:
    """The option of fetch or push that guards the repository at the other end, a directory on this host."""
    inner = os.path.join(path, ".git")
    settings = at(inner if os.path.lexists(inner) else path).settings
    return f"--{service}={service_command(service, settings)}"


def _guarded(git: Git) -> Git:
    listed = git.text("config", "-z", "--show-scope", "--list")
    return git.replace(settings=(*FIXED, *neutralising_settings(listed)))


def _readable(given: str | None) -> IO[bytes]:
    """A file with the input: a pipe would have to be filled while git already prints."""
    if given is None:
        return open(os.devnull, "rb")
    from tempfile import TemporaryFile

    file = TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(given.encode(errors="surrogateescape"))
    file.seek(0)
    return file


def _collect(process: subprocess.Popen[bytes], word: str, seconds: float, limit: int) -> tuple[int, str, str]:
    """All output up to a limit. Beyond the limit or the time, git and its children are killed."""
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
                raise GitFailed(f"git {word} printed too much")
        code = process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # git leads a process group of its own, and has not been waited for
        raise
    return code, output.decode(errors="surrogateescape"), errors.decode(errors="replace")


def _last_line(text: str) -> str:
    """git puts the error after `fatal:`, and advice after that."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (fatal or lines or [""])[0].removeprefix("fatal: ").removeprefix("error: ")[:400]
