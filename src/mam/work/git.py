"""Running git where its own settings may be hostile: argv, no shell, no question, a limit on time and output.

A repository's configuration can name commands. Those that git would run here are switched off: hooks, the file system
monitor, transports (so that nothing is fetched), and content filters that the repository itself defines. Filters of the
user's own configuration (git-lfs, say) stay, because the user wrote them. What cannot be avoided: git itself reads the
repository's objects, index and configuration, so a fault in git is a fault here.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time

from mam.frozen import Frozen
from mam.machine.environment import find_program, without_secrets
from mam.work.fitness import tells_of_lack

QUICK_SECONDS = 60.0
LONG_SECONDS = 600.0
OUTPUT_LIMIT = 1 << 20
_ERROR_LIMIT = 1 << 14
_SAFE = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.askPass": "",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_FILTER_KEYS = ("clean", "smudge", "process")
_WAYS = ("file", "https", "http", "ssh", "git")


class GitFailed(Exception):
    """One line for the person who reads the job's record."""

    def tells_of_lack(self) -> bool:
        """Whether the machine lacked something. Of a file that it could not write git does not say why."""
        return tells_of_lack(str(self)) or str(self).startswith("unable to write ")


class Git(Frozen):
    """One repository, spoken to from one directory."""

    where: tuple[str, ...]
    """`-C directory` to look for the repository, or `--git-dir=… --work-tree=…` when it is known."""
    settings: dict[str, str]
    keep_open: tuple[int, ...] = ()
    """Descriptors that git holds for as long as it runs: the lock of the place that it works on."""

    def text(self, *words: str, seconds: float = QUICK_SECONDS, limit: int = OUTPUT_LIMIT) -> str:
        """What git prints; GitFailed when it fails, takes too long or says too much."""
        code, output, errors = self._run(words, seconds, limit)
        if code:
            raise GitFailed(_last_line(errors) or f"git {words[0]} ended with {code}")
        return output

    def path(self, *words: str) -> str:
        """The one path that git prints, whatever characters it has."""
        return self.text(*words).removesuffix("\n")

    def succeeds(self, *words: str) -> bool:
        return self._run(words, QUICK_SECONDS, OUTPUT_LIMIT)[0] == 0

    def _run(self, words: tuple[str, ...], seconds: float, limit: int) -> tuple[int, str, str]:
        environ = _environment(self.settings)
        program = find_program("git", environ)
        if program is None:
            raise GitFailed("git is not on PATH")
        argv = [program, "--no-pager", "--literal-pathspecs", *self.where, *words]
        try:
            process = subprocess.Popen(
                argv, env=environ, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                pass_fds=self.keep_open, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise GitFailed(f"git cannot be started: {error}") from None
        with process:
            return _collect(process, words[0], seconds, limit)


def discover(directory: str, keep_open: tuple[int, ...] = ()) -> Git:
    """The repository that holds a directory of the user's."""
    plain = Git(where=("-C", directory), settings=_SAFE, keep_open=keep_open)
    return plain.replace(settings={**_SAFE, **_without_own_filters(plain)})


def at(git_directory: str, work_tree: str | None = None, keep_open: tuple[int, ...] = ()) -> Git:
    """A repository that is known. Its work tree may be an agent's, whose `.git` could by now lead anywhere."""
    where = [f"--git-dir={git_directory}"] + ([f"--work-tree={work_tree}"] if work_tree is not None else [])
    if work_tree is not None:
        where = ["-C", work_tree, *where]
    plain = Git(where=tuple(where), settings=_SAFE, keep_open=keep_open)
    return plain.replace(settings={**_SAFE, **_without_own_filters(plain)})


def with_transports(git: Git) -> Git:
    """For a repository whose settings only mam writes: it may fetch and push by the ways that run nothing but git and
    ssh, with the user's own credentials, and without asking anybody."""
    return git.replace(settings={**git.settings, **{f"protocol.{way}.allow": "always" for way in _WAYS}})


def _without_own_filters(git: Git) -> dict[str, str]:
    """Settings that undo the filters which the repository's own configuration defines."""
    pattern = rf"^filter\..*\.({'|'.join(_FILTER_KEYS)})$"
    words = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", pattern)
    code, output, errors = git._run(words, QUICK_SECONDS, OUTPUT_LIMIT)
    if code not in (0, 1):  # 1 is its way to say that there is none
        raise GitFailed(_last_line(errors) or f"git config ended with {code}")
    fields = output.split("\0")
    own = {key.rpartition(".")[0] for scope, key in zip(fields[::2], fields[1::2], strict=False) if scope in _OWN}
    return {f"{name}.{key}": "" for name in own for key in _FILTER_KEYS} | {f"{name}.required": "false" for name in own}


_OWN = ("local", "worktree")


def _environment(settings: dict[str, str]) -> dict[str, str]:
    """The user's, for HOME and what filters may need; nothing that steers git itself is left of it."""
    kept = {name: value for name, value in without_secrets(os.environ).items() if not name.startswith("GIT_")}
    pairs: dict[str, str] = {}
    for number, (key, value) in enumerate(settings.items()):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {
        **kept,
        **pairs,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_EDITOR": "false",
        "LC_ALL": "C",
    }


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
