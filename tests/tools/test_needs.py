"""`make test` on a machine that lacks programs: what is installed, what is said, and what becomes of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.needs import NEEDS, PACKAGES, found

from tests.needs import need

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "needs.py"
HIDDEN = "zsh"
APT = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/../asked"
case "$*" in
  *update) touch "$here/../lists";;
  *) [ -e "$here/../lists" ] || { echo "E: Unable to locate package" >&2; exit 100; }
     ln -s /bin/true "$here/zsh";;
esac
"""
"""Installs zsh, once it has lists of packages."""


class Machine:
    """A directory with every program of this machine that the tests need, but one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in {*PACKAGES, "env", "sh", "dirname", "touch", "ln"} - {HIDDEN}:
            (self.programs / name).symlink_to(found(name) or "/bin/true")

    def add(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def run(self, *command: str, ci: bool = False) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
        environment |= {"PATH": str(self.programs)} | ({"CI": "true"} if ci else {})
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)

    def check(self, *, ci: bool = False) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, str(SCRIPT), ci=ci)

    def test(self, *words: str, ci: bool = False) -> subprocess.CompletedProcess[str]:
        pytest_ = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
        return self.run(*pytest_, "tests/cli/test_completion.py", "-k", "become and (bash or zsh)", *words, ci=ci)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if found(HIDDEN) in ("/usr/sbin/zsh", "/sbin/zsh", "/usr/local/sbin/zsh"):
        pytest.skip("zsh cannot be hidden here")
    return Machine(tmp_path)


def test_where_nothing_can_be_installed_the_line_to_type_is_printed(machine: Machine) -> None:
    ran = machine.check()
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr == "tests that need zsh will be skipped; to run them too: apt-get install zsh\n"


def test_in_ci_what_is_missing_is_an_error(machine: Machine) -> None:
    ran = machine.check(ci=True)
    assert (ran.returncode, ran.stderr) == (1, "the tests need zsh: apt-get install zsh\n")


def test_nothing_is_printed_if_nothing_is_missing(machine: Machine) -> None:
    machine.add(HIDDEN, "#!/bin/sh\n")
    machine.add("apt-get", "#!/bin/sh\nexit 1\n")
    ran = machine.check(ci=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("ci", [False, True])
def test_root_installs_what_is_missing_and_fetches_lists_only_for_that(machine: Machine, ci: bool) -> None:
    """Or with a sudo that needs no password."""
    machine.add("apt-get", APT)
    machine.add("sudo", '#!/bin/sh\nshift\nexec "$@"\n')
    machine.add("true", "#!/bin/sh\n")
    ran = machine.check(ci=ci)
    assert (ran.returncode, ran.stderr) == (0, "")
    install = "-qq install --yes --no-install-recommends zsh"
    assert (machine.folder / "asked").read_text().splitlines() == [install, "-qq update", install]

    (machine.programs / HIDDEN).unlink()
    machine.check(ci=ci)
    assert (machine.folder / "asked").read_text().splitlines()[3:] == [install]


def test_an_installation_that_fails_gives_its_reason_and_the_line(machine: Machine) -> None:
    machine.add("apt-get", '#!/bin/sh\necho "E: no route" >&2\nexit 100\n')
    machine.add("sudo", '#!/bin/sh\nshift\nexec "$@"\n')
    machine.add("true", "#!/bin/sh\n")
    ran = machine.check()
    assert ran.returncode == 0
    reason, line = ran.stderr.splitlines()
    assert (reason, line.rpartition(": ")[2]) == ("E: no route", "apt-get install zsh")


@pytest.mark.parametrize("spread", ["0", "2"])
def test_exactly_the_tests_of_a_missing_program_are_skipped_and_named(machine: Machine, spread: str) -> None:
    ran = machine.test("-n", spread)
    assert ran.returncode == 0, ran.stdout
    *_, heading, named, _counts = ran.stdout.strip().splitlines()
    assert heading.strip("= ") == "1 skipped: needs zsh: apt-get install zsh"
    assert named == "tests/cli/test_completion.py::test_a_label_cannot_become_a_command"
    assert "1 passed, 1 skipped" in ran.stdout


def test_in_ci_the_tests_of_a_missing_program_fail(machine: Machine) -> None:
    ran = machine.test(ci=True)
    assert ran.returncode == 1, ran.stdout
    assert "needs zsh: apt-get install zsh" in ran.stdout


def test_a_program_that_the_table_lacks_is_an_error_everywhere() -> None:
    with pytest.raises(AssertionError, match="does not list"):
        need("sh")
    assert len(PACKAGES) == len(NEEDS)


def test_what_tests_start_does_not_inherit_that_nohup_ignores_signals() -> None:
    test = "tests/work/test_worker_process.py::TestSignals::test_an_idle_worker_ends_at_once"
    nohup = ["sh", "-c", "trap '' INT HUP QUIT; exec \"$@\"", "sh"]
    ran = subprocess.run(
        [*nohup, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
