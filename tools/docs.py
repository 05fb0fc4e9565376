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


ROUTES_BEGIN, ROUTES_END = "<!-- routes: begin -->", "<!-- routes: end -->"


def _api() -> str:
    """The table of routes in the page about the API."""
    from mam.serve.route import ANYBODY
    from mam.serve.routes import ROUTES

    rows = ["| route | effect | command | scope |", "|---|---|---|---|"]
    for route in ROUTES:
        scopes = "none" if ANYBODY in route.scopes else ", ".join(f"`{scope}`" for scope in route.scopes)
        verb = "" if route.verb is None else f"`mam {route.verb}`"
        rows.append(f"| `{route.method} {route.path}` | {route.summary.rstrip('.')} | {verb} | {scopes} |")
    before, _, rest = (ROOT / "docs/api.md").read_text(encoding="utf-8").partition(ROUTES_BEGIN)
    _, end, after = rest.partition(ROUTES_END)
    if not end:
        raise SystemExit(f"docs/api.md lacks the markers {ROUTES_BEGIN} and {ROUTES_END}")
    return "\n".join([f"{before}{ROUTES_BEGIN}", *rows, f"{ROUTES_END}{after}"])


DOCUMENTS: dict[str, Callable[[], str]] = {
    "README.md": _readme, "docs/reference.md": reference, "src/mam/serve/openapi.json": _openapi,
    "docs/api.md": _api,
}  # fmt: skip


if __name__ == "__main__":
    main()
