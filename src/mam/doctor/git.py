"""Check that git does not track the registry: prompts and results would be in the repository's history."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, wrong
from mam.work.git.command import GitFailed, discover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    directory = context.directory_unchecked
    if directory is None:
        return
    folder = os.path.dirname(directory)
    kept = folder if os.path.basename(folder) in (".mam", ".hermes") else directory
    try:
        git = discover(os.path.dirname(kept))
        top = git.path("rev-parse", "--show-toplevel")
        tracked = git.text("ls-files", "-z", "--", kept).split("\0")[:-1]
        ignored = not git.text("ls-files", "--others", "--exclude-standard", "--directory", "--", directory)
    except GitFailed:
        yield fine("not in a git repository, or git is not installed")
        return
    tracked = [name for name in tracked if os.path.basename(name) not in (".gitignore", "config.toml")]
    if tracked:
        yield wrong(
            f"git tracks {count(len(tracked), 'file')} of the registry, such as {tracked[0]}",
            "prompts and results get into the history, and a checkout restores old statuses",
            f"git -C {top} rm -r --cached -q {kept}, then commit",
        )
    if not ignored:
        file = os.path.join(kept, ".gitignore")
        can = os.path.basename(kept) in (".mam", ".hermes") and not os.path.lexists(file)
        yield wrong(
            f"git does not ignore {kept}",
            "the next `git add .` adds prompts and results to the history",
            None if can else f"echo '*' >> {file}",
            (lambda: _ignore(file)) if can else None,
        )
    if ignored and not tracked:
        yield fine("git ignores the registry")


def _ignore(file: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    with open(descriptor, "w", encoding="ascii") as try_open:
        try_open.write("*\n")
