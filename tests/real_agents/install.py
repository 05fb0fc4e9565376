"""`python -m tests.real_agents.install DIRECTORY`: makes DIRECTORY a link to the installed coding agents.

The packages are in the user's cache (`$XDG_CACHE_HOME/mam-tests`), under a name made from package.json: every checkout
with the same versions shares them, and only the first one downloads. Each is installed under a temporary name and
renamed when it is whole, so an installation that was killed leaves nothing that looks complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = Path(__file__).with_name("package.json")
_OPTIONS = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")


def cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "mam-tests"


def installed(packages: Path, folder: Path) -> Path:
    """The directory with these packages, which is made if there is none. Two processes that call it at once install
    once."""
    name = f"agents-{hashlib.sha256(packages.read_bytes()).hexdigest()[:16]}"
    target = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _install(packages, target)
    return target


def _install(packages: Path, target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("what the tests run comes from npm, which is not on PATH: apt-get install npm, or install Node.js")
    print(f"installing what {packages} lists into {target} …", file=sys.stderr, flush=True)
    for left in target.parent.glob(f"{target.name}.*.part"):
        shutil.rmtree(left, ignore_errors=True)  # the lock is held, so no process fills it
    part = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent))
    shutil.copy(packages, part / "package.json")
    ran = subprocess.run([npm, "install", "--prefix", str(part), *_OPTIONS], stdin=subprocess.DEVNULL)
    if ran.returncode:
        shutil.rmtree(part, ignore_errors=True)
        sys.exit(f"npm could not install {packages} (exit code {ran.returncode}, above): is its registry reachable?")
    part.rename(target)


def main(link: str) -> None:
    target = installed(PACKAGES, cache())
    if os.path.isdir(link) and not os.path.islink(link):
        shutil.rmtree(link)  # of an older checkout, which installed here
    if not os.path.islink(link) or os.readlink(link) != str(target):
        fresh = f"{link}.{os.getpid()}"
        os.symlink(target, fresh)
        os.replace(fresh, link)


if __name__ == "__main__":
    main(sys.argv[1])
