"""The terminal captures of docs/coding-agents.md, made from real runs: each replaces the block after its comment
`<!-- capture: NAME -->`. `make picture-agents` writes them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.terminal import Terminal
from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "docs" / "coding-agents.md"
SHOWN_FOLDER = "/home/anna/course"
PROMPT = "Make the sum right. Read todo.md and do what it says."
TODO = """\
model: write sums.py def total(numbers): return sum(numbers)
model: run python3 -c 'import sums; print(sums.total([1, 2, 3])); print("1 passed")'
model: run python3 -c 'import sums; print(sums.total(None))'
model: say **total** is right now: 1 passed.
"""


def begin_repository(folder: Path) -> None:
    """With the task, committed."""
    (folder / "todo.md").write_text(TODO, "utf-8")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "begin")):
        author = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org")
        subprocess.run(["git", *author, *words], cwd=folder, check=True)


def write_captures() -> None:
    page = PAGE.read_text("utf-8")
    claude = ("run", PROMPT, "--agent", "claude-code", "--permissions", "full", "--artifact", "sums.py")
    for name, text in {**_captures("claude-code", {"run": (80, claude)}), **_codex()}.items():
        page = with_capture(page, name, text)
    PAGE.write_text(page, "utf-8")


def with_capture(page: str, name: str, text: str) -> str:
    """The page with this text in the block of that name."""
    block = re.compile(rf"(<!-- capture: {name} -->\n```text\n).*?(\n```\n)", re.DOTALL)
    page, count = block.subn(lambda found: f"{found[1]}{text}{found[2]}", page)
    assert count == 1, f"the page has {count} blocks for the capture {name!r}"
    return page


def _codex() -> dict[str, str]:
    run = ("run", PROMPT, "--agent", "codex", "--artifact", "sums.py")
    return _captures("codex", {"": (80, run), "output": (60, ("output", "JOB")), "show": (80, ("show", "JOB"))})


def _captures(agent: str, commands: dict[str, tuple[int, Sequence[str]]]) -> dict[str, str]:
    """What the commands show, one after the other in one directory. JOB is the only job."""
    # Not in /tmp, where Codex warns of its own home.
    with tempfile.TemporaryDirectory(prefix="mam-", dir="/var/tmp") as folder, ModelServer() as model:
        setup = AgentSetup(agent, Path(folder), model)
        setup.mam.env |= {"IS_SANDBOX": "1", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
        begin_repository(setup.here)
        setup.mam("init")
        shown = {}
        for name, (columns, words) in commands.items():
            jobs = setup.mam("list", "--json").json
            words = [jobs[0]["job_id"][:8] if word == "JOB" else word for word in words]
            with Terminal(setup.mam._argv(tuple(words)), setup.here, setup.mam.env, columns, 60) as terminal:
                assert terminal.ended() == 0, terminal.text
                shown[name] = terminal.text.rstrip().replace(str(setup.here), SHOWN_FOLDER)
        shown.pop("", None)
        return shown
