"""What a job changed, as its record says: `run.changes`. Records are untrusted, so every field is checked."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

_TEXTS = ("repository", "directory", "branch", "before", "after", "problem", "note")
_COUNTS = ("files", "added", "removed")
_OBJECT_LENGTHS = (40, 64)


class Changes(Frozen):
    """Where the changes of a job are, and how many. A count is None while it is unknown."""

    repository: str
    """The git directory that holds the commits or trees."""
    directory: str
    """The top of the work tree in which the agent worked."""
    before: str
    """The commit, or in a shared directory the tree, from which the job began."""
    after: str | None = None
    branch: str | None = None
    shared: bool = False
    """Whether others may have changed the directory at the same time."""
    files: int | None = None
    added: int | None = None
    removed: int | None = None
    problem: str | None = None
    note: str | None = None

    def summary(self) -> str:
        """`1 file +6 -2 on mam/fix-1234abcd`; empty while it is unknown."""
        if self.files is None:
            return ""
        if not self.files:
            return "no file changed"
        names = "1 file" if self.files == 1 else f"{self.files:,} files"
        where = f"in {self.directory} (may include others' changes)" if self.shared else f"on {self.branch}"
        return f"{names} +{self.added or 0} -{self.removed or 0} {where}"


def changes_of(job: Job) -> Changes | None:
    """None for a job that ran outside of a git repository, or has not run."""
    found = (job.run or {}).get("changes")
    if not isinstance(found, dict):
        return None
    values: dict[str, object] = {name: found[name] for name in _TEXTS if isinstance(found.get(name), str)}
    values |= {name: found[name] for name in _COUNTS if type(found.get(name)) is int}
    if not {"repository", "directory", "before"} <= values.keys():
        return None
    if not all(is_object(values[name]) for name in ("before", "after") if name in values):
        return None
    return Changes(**values, shared=found.get("shared") is True)  # type: ignore[arg-type]


def is_object(name: object) -> bool:
    """Whether it is the full name of a git object, so that git cannot take it for an option or another ref."""
    return isinstance(name, str) and len(name) in _OBJECT_LENGTHS and all(one in "0123456789abcdef" for one in name)
