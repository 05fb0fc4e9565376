"""What only a person may do is refused to every process that an agent leaves behind, whatever that hides."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.needs import need
from tests.work.worker_commands import Working, ended, made

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam

CLEAN = "env -i HOME={home} XDG_CONFIG_HOME={home}/config PATH={path} MAM_STORE={store} "
FORKS_TWICE = "import os, sys, time\nif os.fork(): sys.exit()\nos.setsid()\nif os.fork(): sys.exit()\n"
FORKS_TWICE += "while os.getppid() != int(sys.argv[1]): time.sleep(0.01)\nos.execvp(sys.argv[2], sys.argv[2:])"
WAYS = {
    "as it is": "",
    "without its variables": "env -u MAM_STORE_MARK -u MAM_SOCKET ",
    "with a clean environment": CLEAN,
    "in a session of its own": CLEAN + "setsid -w ",
    "without a terminal": CLEAN + "nohup ",
    "forked twice": CLEAN + f"{shlex.quote(sys.executable)} -c {shlex.quote(FORKS_TWICE)} $PPID ",
    "in tmux": CLEAN + "tmux -S $(mktemp -u {here}/XXX) -f /dev/null new-session -d ",
}


@pytest.fixture
def plain(tmp_path: Path) -> Mam:
    return made(tmp_path, "sqlite")


@pytest.mark.parametrize("way", WAYS)
def test_a_process_of_an_agent_answers_nothing(plain: Mam, way: str) -> None:
    need("tmux")
    env = plain.env
    how = WAYS[way].format(home=plain.home, path=env["PATH"], store=env["MAM_STORE"], here=plain.here)
    script = "\n".join(
        [
            f'try() {{ {how} sh -c "mam $* 2>said.new; echo \\$? >>said.new; mv said.new said" >/dev/null 2>&1; }}',
            'for words in "answer $MAM_JOB_ID allow" "rules add deny -- x" trust "token list" "config set max_depth 1"',
            "do try $words; until test -e said; do sleep 0.05; done; cat said >>all; rm said; done; echo x >over",
        ]
    )
    job = plain.register("Ask", "--artifact", "over", "--agent", "robot")
    plain("config", "set", "commands.robot.argv", json.dumps(["sh", "-c", f"mam ask x --tool Bash; {script}"]))
    with Working(plain, "-s", "robot"):
        assert ended(plain, job)["status"] == "completed", plain.record(job)["reason"]
        said = (plain.here / "all").read_text().splitlines()
        assert len(said) == 10, said
        assert all("only a person" in line for line in said[::2]), said
        assert set(said[1::2]) == {"1"}
    assert plain.record(job)["questions"][0]["state"] == "withdrawn"
