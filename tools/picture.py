"""Draw docs/pictures/watch.svg: a real run of `mam watch`, captured from its terminal.

python -m tools.picture

The script makes a store in a temporary directory, registers jobs, lets real processes claim and finish some of them,
starts `mam watch` in a pseudo-terminal and turns the screen into an SVG file. Run it again after the screen of
`mam watch` has changed.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pyte

PICTURES = Path(__file__).resolve().parent.parent / "docs/pictures"
COLUMNS, LINES = 104, 25
SECONDS = 4.0
CELL_WIDTH, CELL_HEIGHT, MARGIN, SIZE = 8.4, 18, 16, 14
BACKGROUND, FOREGROUND = "#0d1117", "#c9d1d9"
COLOURS = {
    "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff",
    "magenta": "#d2a8ff", "cyan": "#56d4dd", "white": "#f0f6fc", "black": "#484f58",
}  # fmt: skip

SCENE = r"""
exec >/dev/null 2>&1
mam init
job=$(mam register "Write the release notes for 2.4" --agent codex)
mam pick -s codex; mam complete "$job" --result "notes.md"
mam register "echo all checks passed" --agent shell
mam worker -s shell --once
mam register "./deploy-preview.sh staging" --agent shell -s deploy --max-retries 0
mam worker -s deploy --once
job=$(mam register "Upgrade the payment client to API v3" --agent claude-code)
mam pick -s claude-code --owner worker@build-1:2210
mam publish "$job" permission_required --detail "wants to run: npm install --save payments@3"
parser=$(mam register "Rewrite the parser without recursion" --agent codex --artifact parser.py)
mam pick -s codex --owner worker@build-1:2214
mam publish "$parser" progress --detail "grammar done, 41 of 60 tests pass"
login=$(mam register "Find out why the login test is flaky" --agent claude-code --priority 5)
mam pick -s claude-code --owner worker@build-2:871
mam publish "$login" progress --detail "reproduced: the clock is read twice"
mam register "Review the parser" --agent claude-code --after "$parser"
mam register "Send the weekly report" --agent human --at +2h
mam register "Translate the manual into Korean" --agent opencode
mam register "Add tests for the importer" --agent codex
mam register "Remove the dead code in billing/" --agent codex
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mam-picture-") as folder:
        home = Path(folder)
        here = home / "shop"
        here.mkdir()
        environment = _environment(home)
        subprocess.run(["sh", "-c", SCENE], cwd=here, env=environment, check=False)
        screen = capture(["mam", "watch"], here, environment)
    save("watch", screen, "mam watch: jobs that need a person, running, failed, waiting, pending and done")


def save(name: str, screen: pyte.Screen, label: str) -> None:
    """Write docs/pictures/NAME.svg; the label is for those who do not see it."""
    path = PICTURES / f"{name}.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(_svg(screen, label), encoding="utf-8")
    print(path)


def _environment(home: Path) -> dict[str, str]:
    programs = home / "bin"
    programs.mkdir()
    mam = programs / "mam"
    mam.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam "$@"\n')
    mam.chmod(0o755)
    path = f"{programs}:{os.environ.get('PATH', os.defpath)}"
    return {"PATH": path, "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}


def capture(argv: list[str], here: Path, environment: dict[str, str], *keys: bytes, lines: int = LINES) -> pyte.Screen:
    """The screen of a program after some seconds in a terminal of its own, and after each of the keys."""
    screen = pyte.Screen(COLUMNS, lines)
    stream = pyte.ByteStream(screen)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, COLUMNS, 0, 0))
    program = environment["PATH"].partition(":")[0] + "/" + argv[0]
    with subprocess.Popen(
        [program, *argv[1:]], stdin=slave, stdout=slave, stderr=slave, cwd=here, env=environment, start_new_session=True
    ) as process:
        os.close(slave)
        _feed(stream, master)
        for key in keys:
            os.write(master, key)
            _feed(stream, master)
        process.terminate()
    os.close(master)
    return screen


def _feed(stream: pyte.ByteStream, master: int) -> None:
    end = time.monotonic() + SECONDS
    while (left := end - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            stream.feed(os.read(master, 65536))


def _svg(screen: pyte.Screen, label: str) -> str:
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, screen.lines * CELL_HEIGHT + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img"'
        f' aria-label="{escape(label)}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="{SIZE}"'
        f' fill="{FOREGROUND}">',
    ]
    for row in range(screen.lines):
        for column, text, cell in _runs(screen, row):
            lines += _drawn(row, column, text, cell)
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def _runs(screen: pyte.Screen, row: int) -> Iterator[tuple[int, str, pyte.screens.Char]]:
    """Neighbouring cells that look the same, as one piece of text."""
    begin = 0
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    for column in range(1, COLUMNS + 1):
        if column == COLUMNS or cells[column]._replace(data="") != cells[begin]._replace(data=""):
            text = "".join(cell.data for cell in cells[begin:column])
            if text.strip() or cells[begin].reverse:
                yield begin, text, cells[begin]
            begin = column


def _drawn(row: int, column: int, text: str, cell: pyte.screens.Char) -> list[str]:
    x, y = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
    colour = COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 else FOREGROUND)
    drawn = []
    if cell.reverse:
        width = len(text) * CELL_WIDTH
        drawn.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{CELL_HEIGHT}" fill="#1f2937"/>')
    weight = ' font-weight="bold"' if cell.bold else ""
    for word in re.finditer(r"\S+(?: \S+)*", text):  # renderers fold several spaces into one
        begin, length = x + word.start() * CELL_WIDTH, len(word[0]) * CELL_WIDTH
        place = f'x="{begin:.1f}" y="{y + CELL_HEIGHT - 5}" textLength="{length:.1f}"'
        drawn.append(f'<text {place} fill="{colour}"{weight}>{escape(word[0])}</text>')
    return drawn


if __name__ == "__main__":
    main()
