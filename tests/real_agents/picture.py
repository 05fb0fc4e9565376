"""`make picture-agents` draws docs/pictures/watch-agent.svg: the real Claude Code, watched by `mam watch`.

It also writes the captures of docs/coding-agents.md.

The model is the scripted one. The name of the host and the directory are replaced by others of the same length.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import pyte
from tools.picture import capture, save

from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.alone import is_alone
from tests.real_agents.captures import PROMPT, SHOWN_FOLDER, begin_repository, write_captures
from tests.real_agents.model_server import ModelServer

AGENT = "claude-code"
END, ENTER = b"\x1b[F", b"\r"
_INSIDE = "MAM_PICTURE_HOST"


def main() -> None:
    assert is_alone(), "run it by `make picture-agents`"
    if os.environ.get(_INSIDE) != "1":
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--uts", sys.executable, "-m", "tests.real_agents.picture"])
    socket.sethostname("laptop")
    write_captures()
    with tempfile.TemporaryDirectory(prefix="mam-") as folder, ModelServer() as model:
        assert len(folder) == len(SHOWN_FOLDER), "the columns of the screen would move"
        screen = _watched(Path(folder), model)
        _replace(screen, folder, SHOWN_FOLDER)
    save("watch-agent", screen, "mam watch: a job of Claude Code with its changes, checks, cost and conversation")


def _watched(folder: Path, model: ModelServer) -> pyte.Screen:
    setup = AgentSetup(AGENT, folder, model)
    setup.mam.env["IS_SANDBOX"] = "1"  # Claude Code does not believe root otherwise
    setup.mam.env["PYTHONDONTWRITEBYTECODE"] = "1"
    begin_repository(setup.here)
    setup.mam("init")
    setup.mam("register", "Translate the exercises", "--agent", "codex")
    setup.done(PROMPT, "--artifact", "sums.py", "--permissions", "full")
    with setup.at_work():
        setup.job("model: hang")
        assert model.hanging.acquire(timeout=60)
        screen = capture(["mam", "watch"], setup.here, setup.mam.env, END, ENTER, lines=34)
        model.release()
    return screen


def _replace(screen: pyte.Screen, old: str, new: str) -> None:
    """Letter by letter, so that nothing moves."""
    for row in range(screen.lines):
        text = "".join(screen.buffer[row][column].data or " " for column in range(screen.columns))
        at = text.find(old)
        while at >= 0:
            for place, letter in enumerate(new, start=at):
                screen.buffer[row][place] = screen.buffer[row][place]._replace(data=letter)
            at = text.find(old, at + 1)


if __name__ == "__main__":
    main()
