"""tmux through its command, on a named socket.

tmux completes targets: `-t claude` finds `claude-2` when there is no `claude`. So mam lists the panes and compares
names itself. Commands name a pane by its tmux id, inside a condition that tmux checks in the same command.
"""

from __future__ import annotations

import os
import subprocess

from mam.agents.errors import NoAnswer, NoServer, TmuxFailed, TmuxMissing
from mam.machine.environment import find_program, without_secrets
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_SERVER = "mam"
GENERATION, AGENT_ID = "@mam_generation", "@mam_agent_id"
ANSWER_SECONDS = 10.0
SEPARATOR = "\0"
"""Separates two commands of one call. No argument can contain a NUL."""

# Session names contain no colon. The generation is sanitized, because other programs could write extra fields into it.
_FIELDS = (
    "#{session_id} #{session_created} #{session_activity} #{pane_id} #{pane_pid} #{pid} #{pane_dead}"
    " #{?pane_in_mode,#{?pane_mode,#{pane_mode},mode},-}"
    " #{?@mam_generation,#{s/[^A-Za-z0-9_-]/_/:@mam_generation},-} #{session_name}:#{socket_path}"
)
_GONE = ("no server running on", "(No such file or directory)", "(Connection refused)")
_NO_SESSION = "no current target"


class Pane(Frozen):
    """One pane as tmux describes it."""

    session_id: str
    session_created: int
    session_activity: int
    pane: str
    pid: int
    server_pid: int
    dead: bool
    mode: str | None
    generation: str | None
    socket: str
    session: str


class Tmux:
    """One tmux server. Without a socket it is mam's own, which loads the user's tmux.conf when it starts."""

    def __init__(self, socket: str | None = None) -> None:
        self._server_args = ["-L", OWN_SERVER] if socket is None else ["-S", socket]

    def argv(self, *args: str) -> list[str]:
        program = find_program("tmux", os.environ)
        if program is None:
            raise TmuxMissing
        return [program, "-u", *self._server_args, *map(_escape, args)]

    def run(self, *args: str, data: bytes | None = None, start_server: bool = False) -> str:
        """Run tmux and return its output. `start_server` may start a server; its environment contains none of mam's
        secrets."""
        env = without_secrets(os.environ)
        if start_server:
            env = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
        try:
            ran = subprocess.run(
                self.argv(*args),
                input=b"" if data is None else data,
                capture_output=True,
                timeout=ANSWER_SECONDS,
                env=env,
                start_new_session=start_server,
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(why=f"nothing within {ANSWER_SECONDS:g} s") from None
        except OSError as error:
            raise NoAnswer(why=f"it could not be run: {error.strerror}") from None
        if ran.returncode == 0:
            return ran.stdout.decode(errors="replace")
        output = ran.stderr.decode(errors="replace").strip()
        if any(word in output for word in _GONE):
            raise NoServer(why=output)
        if output.startswith(("error connecting", "lost server", "server exited")):
            raise NoAnswer(why=output)
        raise TmuxFailed(what=args[0], problem=output or f"exit {ran.returncode}")

    def panes(self) -> list[Pane]:
        try:
            output = self.run("list-panes", "-a", "-F", _FIELDS)
        except TmuxFailed as error:
            if error.facts["problem"] != _NO_SESSION:
                raise
            return []  # the last session has ended, and the server stays (exit-empty off)
        return [pane for line in output.splitlines() if (pane := _pane(line)) is not None]

    def pane(self, pane: str) -> Pane | None:
        return next((found for found in self.panes() if found.pane == pane), None)

    def first_pane(self, session: str) -> Pane | None:
        """The first pane of the session with exactly this name."""
        panes = [found for found in self.panes() if found.session == session]
        return min(panes, key=lambda found: int(found.pane[1:]), default=None)

    def new_session(self, session: str, workdir: str, command: Sequence[str], env: dict[str, str]) -> Pane | None:
        """Start a session that runs the command without a shell and carries its generation; None if it has already
        ended."""
        args = ["new-session", "-d", "-s", session, "-c", workdir, "-x", "200", "-y", "50"]
        for name, value in env.items():
            args += ["-e", f"{name}={value}"]
        # tmux would pass a single word to a shell.
        args += ["--", "/usr/bin/env", "--", *command] if len(command) == 1 else ["--", *command]
        marks = {GENERATION: env["MAM_GENERATION"], AGENT_ID: env["MAM_AGENT_ID"]}
        for option, value in marks.items():
            args += [SEPARATOR, "set-option", "-t", f"={session}:", option, value]
        # The agent's output must not reach the terminal or the clipboard of an attached client.
        args += [SEPARATOR, "set-option", "-q", "-w", "-t", f"={session}:", "allow-passthrough", "off"]
        args += [SEPARATOR, "set-option", "-q", "-s", "set-clipboard", "off"]
        args += [SEPARATOR, "list-panes", "-a", "-F", _FIELDS]
        output = self.run(*args, start_server=True)
        panes = [pane for line in output.splitlines() if (pane := _pane(line)) is not None]
        return next((pane for pane in panes if pane.generation == env["MAM_GENERATION"]), None)

    def mark(self, pane: Pane, generation: str, agent_id: str) -> None:
        self.run("set-option", "-t", pane.pane, GENERATION, generation, SEPARATOR,
                 "set-option", "-t", pane.pane, AGENT_ID, agent_id)  # fmt: skip

    def run_if(self, pane: str, condition: str, command: str) -> bool:
        """Run the command if the condition holds, atomically in the server; returns whether it ran."""
        whole = f"#{{&&:#{{==:#{{pane_id}},{pane}}},{condition}}}"
        yes, no = f"{command} ; display-message -p yes", "display-message -p no"
        return self.run("if-shell", "-F", "-t", pane, whole, yes, no).strip().endswith("yes")


def generation_condition(generation: str) -> str:
    """A tmux condition. Generations contain only letters, digits, _ and -, which have no meaning in tmux formats."""
    return f"#{{==:#{{{GENERATION}}},{generation}}}"


def _escape(word: str) -> str:
    """Escape a final semicolon, which would end the tmux command."""
    if word == SEPARATOR:
        return ";"
    return f"{word[:-1]}\\;" if word.endswith(";") else word


def _pane(line: str) -> Pane | None:
    fields = line.split(" ", 9)
    if len(fields) != 10:
        return None
    session, _, address = fields[9].partition(":")
    try:
        return Pane(
            session_id=fields[0],
            session_created=int(fields[1]),
            session_activity=int(fields[2]),
            pane=fields[3],
            pid=int(fields[4]),
            server_pid=int(fields[5]),
            dead=fields[6] == "1",
            mode=None if fields[7] == "-" else fields[7],
            generation=None if fields[8] == "-" else fields[8],
            socket=address,
            session=session,
        )
    except ValueError:
        return None
