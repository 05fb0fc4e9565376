"""`make docs`: generate the parts of the documents that come from the code.

python -m tools.docs            write them
python -m tools.docs --check    exit 1 and name the documents that are out of date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from tools.reference import ROOT, reference
from tools.session import readme_session

BEGIN, END = "<!-- commands: begin -->", "<!-- commands: end -->"


def main() -> None:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        raise SystemExit(__doc__)
    stale = [name for name, make in DOCUMENTS.items() if not _is_current(name, make(), write=not check)]
    for name in stale if check else ():
        print(f"{name} is out of date; run `make docs`", file=sys.stderr)
    sys.exit(1 if check and stale else 0)


def _is_current(name: str, made: str, *, write: bool) -> bool:
    file = ROOT / name
    current = file.is_file() and file.read_text(encoding="utf-8") == made
    if write and not current:
        file.write_text(made, encoding="utf-8")
        print(f"{name} is rewritten")
    return current


def _readme() -> str:
    before, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"README.md lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{readme_session()}{END}{after}"


def _openapi() -> str:
    from mam.serve.openapi import describe
    from mam.serve.routes import ROUTES

    schemas = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in (ROOT / "schemas").glob("*.json")}
    return json.dumps(describe(ROUTES, schemas), ensure_ascii=False, indent=1) + "\n"


DOCUMENTS: dict[str, Callable[[], str]] = {
    "README.md": _readme, "docs/reference.md": reference, "src/mam/serve/openapi.json": _openapi,
}  # fmt: skip


if __name__ == "__main__":
    main()
