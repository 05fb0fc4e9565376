"""The documents agree with the code, and their generated parts are up to date."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.reference import (
    docstrings_of,
    environment_names,
    error_classes,
    key_names,
    line_names,
    second_words,
    sentence_of,
)

from mam.__main__ import FIRST_VERBS, MORE_VERBS
from mam.cli.verbs.wait import ENDED_IN_ERROR, WAS_CANCELLED
from mam.config.settings import SETTINGS, Config
from mam.doctor.checks import CHECKS
from mam.events.event import EVENTS
from mam.jobs.status import MOVES, Status

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table after a line."""
    _, _, rest = text.partition(heading)
    table = rest[rest.index("|") :].partition("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


def test_the_generated_parts_are_up_to_date() -> None:
    ran = subprocess.run([sys.executable, "-m", "tools.docs", "--check"], cwd=ROOT, capture_output=True, text=True)

    assert ran.returncode == 0, ran.stderr


def test_the_check_names_a_document_that_is_out_of_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tools import docs

    monkeypatch.setattr(docs, "DOCUMENTS", {"README.md": lambda: "something else"})
    monkeypatch.setattr(sys, "argv", ["docs", "--check"])

    with pytest.raises(SystemExit) as stopped:
        docs.main()

    assert stopped.value.code == 1
    assert capsys.readouterr().err.startswith("README.md is out of date")


# -- everything is documented ----------------------------------------------------------------------------------------


def test_every_verb_is_documented() -> None:
    reference = _read("docs/reference.md")
    for verb in FIRST_VERBS + MORE_VERBS:
        assert f"### mam {verb}\n\n```text\nusage: mam {verb} " in reference, f"{verb}: `make docs`"
        for word in second_words(verb) if verb != "admin" else ():
            assert f"#### mam {verb} {word}\n\n```text\nusage: mam {verb} {word} " in reference, (
                f"{verb} {word}: `make docs`"
            )


def test_the_readme_shows_the_verbs_of_every_day() -> None:
    shown = set(re.findall(r"mam (\w+)", _read("README.md")))

    assert {"register", "list", "pick", "publish", "complete", "result", "fail", "explain", "cancel"} <= shown
    assert {"wait", "logs", "where"} <= shown


def test_every_error_is_documented() -> None:
    codes = {name: (code, sentence) for code, name, sentence in _rows(_read("docs/reference.md"), "## Exit codes")}
    kinds = {f"`{kind.__name__}`": (str(kind.exit_code), sentence_of(kind)) for kind in error_classes()}

    assert {name: codes.get(name) for name in kinds} == kinds


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("## Settings", key_names()),
        ("## Environment", environment_names()),
        ("## Statuses", list(Status)),
        ("## Events", EVENTS),
        ("## Lines of the audit log", line_names()),
    ],
)
def test_every_name_is_documented(heading: str, names: list[str]) -> None:
    section = _read("docs/reference.md").partition(heading)[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))

    missing = set(names) - documented
    assert not missing, f"{heading} of docs/reference.md lacks {sorted(missing)}: its sentence, then `make docs`"


def test_the_table_of_settings_has_every_setting() -> None:
    assert tuple(setting.name for setting in SETTINGS) == Config.field_names


def test_every_check_of_the_doctor_has_its_line() -> None:
    assert [row[0] for row in _rows(_read("docs/how-to/maintenance.md"), "| check | verifies")] == list(CHECKS)


def test_every_status_has_its_sentence() -> None:
    assert set(docstrings_of(Status)) == set(Status)


def test_the_readme_has_every_exit_code_and_no_other() -> None:
    shown = [code for row in _rows(_read("README.md"), "| exit | meaning") for code in row[0].split(", ")]

    codes = {kind.exit_code for kind in error_classes()} | {0, ENDED_IN_ERROR, WAS_CANCELLED}
    assert sorted(map(int, shown)) == sorted(codes)


def test_no_verb_ends_in_a_code_of_its_own() -> None:
    """A bare number that `run` returns is in the table too."""
    documented = {kind.exit_code for kind in error_classes()} | {0, ENDED_IN_ERROR, WAS_CANCELLED}
    read = set()
    for file in (ROOT / "src/mam/cli").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        constants = {
            name.id: part.value.value
            for part in tree.body
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant) and type(part.value.value) is int
            for name in part.targets
            if isinstance(name, ast.Name)
        }
        for part in ast.walk(tree):
            if isinstance(part, ast.FunctionDef) and part.name == "run":
                read.add(file.stem)
                returned = [found.value for found in ast.walk(part) if isinstance(found, ast.Return) and found.value]
                new = {code for one in returned for code in _numbers(one, constants)} - documented
                assert not new, f"{file}: say what {new} means, in README.md and in tools/reference.py"
    assert set(FIRST_VERBS + MORE_VERBS) <= read


def _numbers(value: ast.expr, constants: dict[str, int]) -> list[int]:
    match value:
        case ast.IfExp(body=one, orelse=other):
            return _numbers(one, constants) + _numbers(other, constants)
        case ast.BoolOp(values=several):
            return [code for one in several for code in _numbers(one, constants)]
        case ast.Name(id=name) if name in constants:
            return [constants[name]]
        case ast.Constant(value=int(code)):
            return [code]
    return []


def test_every_error_is_where_the_reference_looks() -> None:
    """An error class elsewhere would have no row in the table of exit codes."""
    homes = {ROOT / "src/mam/errors.py", ROOT / "src/mam/agents/errors.py"}
    known = {"MamError", *(kind.__name__ for kind in error_classes())}
    for file in set((ROOT / "src/mam").rglob("*.py")) - homes:
        for part in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(part, ast.ClassDef):
                bases = {base.id for base in part.bases if isinstance(base, ast.Name)}
                # A class that only passes on another message needs no row.
                assert not bases & known or ast.get_docstring(part) == "{message}", (
                    f"{file}: move {part.name} into src/mam/errors.py, then `make docs`"
                )


# -- the lifecycle ---------------------------------------------------------------------------------------------------


def _all_moves() -> list[tuple[str, str]]:
    return sorted((status.value, to.value) for status, targets in MOVES.items() for to in targets)


def test_the_table_of_moves_is_the_code_s() -> None:
    assert sorted((row[0], row[1]) for row in _rows(_read("docs/lifecycle.md"), "## Every transition")) == _all_moves()


def test_the_diagram_of_moves_is_the_code_s() -> None:
    arrows = re.findall(r"^ +(\w+) --> (\w+)", _read("docs/lifecycle.md"), re.MULTILINE)

    assert sorted(arrows) == _all_moves()


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_paragraph(status: Status) -> None:
    assert f"\n\n**{status}**: " in _read("docs/lifecycle.md")


# -- links and traces ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_links_have_a_target(document: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", document.read_text(encoding="utf-8"))):
        name, _, heading = link.partition("#")
        if ":" in name:
            continue
        target = document.parent / name if name else document
        assert target.exists(), f"{document.name} links to {link}"
        if heading:
            assert heading in _anchors(target), f"{document.name} links to {link}"


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", document.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", [page for page in DOCUMENTS if page.name != "CHANGELOG.md"], ids=_named)
def test_the_source_files_that_a_document_names_exist(document: Path) -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sql))`", document.read_text(encoding="utf-8")))

    assert not [name for name in named if not (ROOT / name).exists() and not (ROOT / "src/mam" / name).exists()]


def test_the_modules_that_the_table_of_packages_names_exist() -> None:
    modules = {file.stem for file in (ROOT / "src/mam").rglob("*.py")}
    contents = [row[1] for row in _rows(_read("docs/architecture.md"), "## Packages")]

    assert set(re.findall(r"`([a-z_]+)`", " ".join(contents))) <= modules


def test_the_table_of_packages_has_every_package() -> None:
    named = " ".join(first for first, *_ in _rows(_read("docs/architecture.md"), "## Packages"))
    packages = sorted(path.parent.name for path in (ROOT / "src/mam").glob("*/__init__.py"))
    assert [name for name in packages if f"`{name}/" not in named] == []


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs/README.md"
    listed = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text(encoding="utf-8"))}

    assert listed == {page for page in DOCUMENTS if page.is_relative_to(index.parent)} - {index}


def test_no_trace_of_the_machines_it_was_written_on() -> None:
    # Joined here, so that this file does not contain what it searches for.
    traces = [f"{name}[.]org" for name in ("pythonhosted", "npmjs")] + [
        rf"(?<!\w)/{name}/"
        for name in ("work", "root")  # at the beginning of a path: there are tests/work, too
    ]
    traces += [f"{scheme}://{host}[.]" for scheme in ("http", "https") for host in ("pypi", "index", "registry")]
    trace = re.compile("|".join(traces))
    found = [
        f"{_named(file)}:{number}: {line.strip()[:120]}"
        for file in _text_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if trace.search(line)
    ]

    assert not found, "\n".join(found)


def _text_files() -> list[Path]:
    """The files that git tracks or would track; in a copy without git, all files that no tool generates."""
    list_files = "git ls-files --cached --others --exclude-standard -z"
    asked = subprocess.run(["sh", "-c", list_files], cwd=ROOT, capture_output=True, text=True)
    if asked.returncode == 0:
        files = [ROOT / name for name in asked.stdout.split("\0") if name]
    else:
        made = {line.strip("/\n") for line in _read(".gitignore").splitlines()}
        files = [file for file in ROOT.rglob("*") if not made & set(file.relative_to(ROOT).parts)]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()]
