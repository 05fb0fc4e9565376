"""List the workspaces of jobs on this host, or remove one.

Each line has the job, the kind, the changes that exist nowhere else, the branch and the path. Only --force removes a
workspace with uncommitted changes or with commits that no remote and no other branch contains. Even then, a branch with
such commits stays.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_json_array, print_row, say
from mam.errors import BadInput, UnknownJob, WorkspaceKept
from mam.jobs.continuation import conversation_key
from mam.jobs.input_rules import is_job_id
from mam.jobs.status import RUNNING
from mam.work.cleanup import list_workspaces, remove_workspace
from mam.work.state_dirs import work_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.registry import Registry
    from mam.work.cleanup import Workspace


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--remove", metavar="JOB", help="remove the workspace of this job")
    parser.add_argument("--force", action="store_true", help="even if files are lost")


def run(options: Options) -> int:
    if options.force and options.remove is None:
        raise BadInput(why="--force needs --remove JOB")
    registry = registry_of(options)
    directory = work_directory(registry.store.address)
    if options.remove is not None:
        return _remove(registry, directory, options)
    held = list_workspaces(directory)
    if options.json:
        print_json_array(place.as_dict() for place in held)
        return 0
    for place in held:
        print_row(place.job_id, place.kind, _state(place), place.branch or "-", place.path)
    return 0


def _state(place: Workspace) -> str:
    if place.problem:
        return "unknown"
    words = [*(["dirty"] if place.dirty else []), *([f"unpushed:{place.unpushed}"] if place.unpushed else [])]
    return ",".join(words) or "clean"


def _remove(registry: Registry, directory: str, options: Options) -> int:
    job_id = _resolved(registry, directory, options.remove)
    note = remove_workspace(directory, job_id, force=options.force)
    if note is not None:
        say(note)
    if options.json:
        print_json({"job_id": job_id, "removed": True, "note": note})
    else:
        print_row(job_id)
    return 0


def _resolved(registry: Registry, directory: str, name: str) -> str:
    """A running job keeps its workspace. A job that the store no longer contains may still have one here."""
    try:
        job = registry.get(name)
    except UnknownJob:
        if is_job_id(name) and any(place.job_id == name for place in list_workspaces(directory)):
            return name
        raise
    holder = job.job_id if job.status is RUNNING else registry.store.holder(conversation_key(job))
    if holder is not None:
        raise WorkspaceKept(job=job.job_id, why=f"job {holder[:8]} is running in it; `mam cancel` stops the job")
    return job.job_id
