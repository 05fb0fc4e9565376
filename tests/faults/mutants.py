"""`make mutants`: puts each seeded fault into a copy of the project and runs the test that must catch it there.

python -m tests.faults.mutants [WORD …]     all, or those whose name contains one of the words; after all of
                                            them it rewrites the table in docs/guarantees.md
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.counting import write_between
from tests.faults.seeded_faults import MUTANTS, Mutant
from tests.faults.store_kinds import quick_place

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 900.0
KEPT = ROOT / ".faults" / "mutants.json"
"""The results so far. A run by words adds to them; the table is written when every fault has been tried."""


def main() -> None:
    words = sys.argv[1:]
    known = _kept() if words else {}
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    for place, mutant in enumerate(chosen, start=1):
        began = time.monotonic()
        found = caught(mutant)
        seconds = time.monotonic() - began
        told = f"caught by {found}" if found else f"SURVIVED {mutant.caught_by}"
        print(f"{place:3}/{len(chosen)} {mutant.name}: {told} ({seconds:.0f} s)", flush=True)
        KEPT.parent.mkdir(exist_ok=True)
        known = {**(_kept() if words else known), mutant.name: found}  # another run by words may have added to it
        KEPT.write_text(json.dumps(known), encoding="utf-8")
    tried = [mutant for mutant in MUTANTS if mutant.name in known]
    if len(tried) == len(MUTANTS):
        write_between("mutants", _table(known))
    sys.exit(1 if any(known[mutant.name] is None for mutant in tried) else 0)


def _kept() -> dict[str, str | None]:
    found: dict[str, str | None] = json.loads(KEPT.read_bytes()) if KEPT.exists() else {}
    return found


def _table(known: dict[str, str | None]) -> str:
    rows = [f"| {mutant.name} | `{os.path.basename(known[mutant.name] or 'nobody')}` |" for mutant in MUTANTS]
    caught_ones = sum(known[mutant.name] is not None for mutant in MUTANTS)
    return "\n".join((f"{caught_ones} of {len(MUTANTS)} are caught.", "", "| fault | caught by |", "|---|---|", *rows))


@contextmanager
def mutated(mutant: Mutant) -> Iterator[tuple[Path, dict[str, str]]]:
    """A copy of the project with the fault, and the environment that runs this copy."""
    with TemporaryDirectory(prefix="mam-mutant-", dir=quick_place()) as folder:
        copy = Path(folder) / "mam"
        ignored = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".bench", ".faults", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=ignored)
        file = copy / mutant.file
        file.write_text(applied(mutant, file.read_text(encoding="utf-8")), encoding="utf-8")
        yield copy, {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}


def caught(mutant: Mutant) -> str | None:
    """The first test that failed, or None."""
    with mutated(mutant) as (copy, environment):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=no"]
        ran = subprocess.run(
            [*command, mutant.caught_by], cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST,
            check=False,
        )  # fmt: skip
    red = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", ran.stdout, re.MULTILINE)
    assert red or ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return red[1] if red else None


def applied(mutant: Mutant, source: str) -> str:
    assert source.count(mutant.old) == 1, f"{mutant.name}: its text is not in {mutant.file} exactly once"
    return source.replace(mutant.old, mutant.new)


if __name__ == "__main__":
    main()
