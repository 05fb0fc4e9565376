"""`make picture-agents` draws docs/pictures/watch-agent.svg: the real Claude Code, watched by `mam watch`.

The model is the scripted one. The name of the host and the directory are replaced by others of the same length.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pyte
from tools.picture import capture, save

from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.alone import is_alone
from tests.real_agents.model_server import ModelServer

AGENT = "claude-code"
SHOWN_FOLDER = "/home/anna/course"
"""As long as the temporary directory."""
PROMPT = "Make the sum right. Read todo.md and do what it says."
TODO = """\
model: write sums.py def total(numbers): return sum(numbers)
model: run python3 -c 'import sums; print(sums.total([1, 2, 3])); print("1 passed")'
model: run python3 -c 'import sums; print(sums.total(None))'
model: say **total** is right now: 1 passed.
"""
END, ENTER = b"\x1b[F", b"\r"
_INSIDE = "MAM_PICTURE_HOST"


def main() -> None:
    assert is_alone(), "run it by `make picture-agents`"
    if os.environ.get(_INSIDE) != "1":
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--uts", sys.executable, "-m", "tests.real_agents.picture"])
    socket.sethostname("laptop")
    with tempfile.TemporaryDirectory(prefix="mam-") as folder, ModelServer() as model:
        assert len(folder) == len(SHOWN_FOLDER)
        screen = _watched(Path(folder), model)
        _replace(screen, folder, SHOWN_FOLDER)
    save("watch-agent", screen, "mam watch: a job of Claude Code with its changes, checks, cost and conversation")


def _watched(folder: Path, model: ModelServer) -> pyte.Screen:
    setup = AgentSetup(AGENT, folder, model)
    setup.mam.env["IS_SANDBOX"] = "1"  # Claude Code does not believe root otherwise
    setup.mam.env["PYTHONDONTWRITEBYTECODE"] = "1"
    (setup.here / "todo.md").write_text(TODO, "utf-8")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
        author = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org")
        subprocess.run(["git", *author, *words], cwd=setup.here, check=True)
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
