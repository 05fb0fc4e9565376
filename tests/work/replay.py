"""Programs that print what a real agent once printed and end as it ended: recordings, not models of agents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mam.agent_table import CODING_AGENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT = Path(__file__).parent / "transcripts"
PROGRAMS = {name: kind.program for name, kind in CODING_AGENTS.items()}

_SCRIPT = """#!{python} -ISu
import json, os, sys, time
folder = {folder!r}
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(json.dumps({{"argv": sys.argv[1:], "stdin": sys.stdin.read()}}) + "\\n")
with open(os.path.join(folder, "calls")) as calls:
    turn = len(calls.readlines())
scenes = json.load(open(os.path.join(folder, "scenes")))
scene = scenes[min(turn, len(scenes)) - 1]
for name, text in scene["files"].items():
    open(name, "w").write(text)
sys.stderr.write(scene["err"])
sys.stderr.flush()
for _ in range(scene.get("flood", 0)):
    sys.stdout.write("x" * (1 << 20))
if scene.get("flood"):
    sys.stdout.write("\\n")
sys.stdout.write(scene["out"])
sys.stdout.flush()
if scene["stays"]:
    time.sleep(1000)
if scene["code"] < 0:
    os.kill(os.getpid(), -scene["code"])
sys.exit(scene["code"])
"""


class Replay:
    """One agent whose program plays the scenes one after the other, the last one again and again."""

    def __init__(self, agent: str, folder: Path) -> None:
        self.agent = agent
        self.folder = folder / f"replay-{agent}"
        self.folder.mkdir()
        program = self.folder / PROGRAMS[agent]
        program.write_text(_SCRIPT.format(python=sys.executable, folder=str(self.folder)))
        program.chmod(0o755)

    def plays(self, *scenes: dict[str, object]) -> None:
        (self.folder / "scenes").write_text(json.dumps(scenes))

    @property
    def calls(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


def recorded(
    name: str, *, files: Sequence[str] = (), stays: bool = False, out: str | None = None, code: int | None = None
) -> dict[str, object]:
    """A recording, and which files its tools are to have written."""
    codes = json.loads((KEPT / "exit_codes.json").read_text())
    return {
        "out": (KEPT / f"{name}.out").read_text("utf-8") if out is None else out,
        "err": (KEPT / f"{name}.err").read_text("utf-8"),
        "code": codes[name] if code is None else code,
        "files": dict.fromkeys(files, "it was me\n"),
        "stays": stays,
    }
