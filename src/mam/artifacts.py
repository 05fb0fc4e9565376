"""Done is checked: the files a job promised are there, inside its directory, and are files."""

from __future__ import annotations

import os
import stat

from mam.errors import ArtifactMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job


def check_artifacts(job: Job) -> None:
    """Raises ArtifactMissing for the first artifact that is not a regular file reached without a link."""
    for artifact in job.expected_artifacts:
        problem = _problem(job.workdir or os.getcwd(), artifact)
        if problem:
            raise ArtifactMissing(job=job.job_id, artifact=artifact, problem=problem)


def _problem(workdir: str, artifact: str) -> str | None:
    """Walks down from the directory one name at a time, so that no link can lead the look elsewhere."""
    if artifact.startswith("/"):
        # Only an old record can hold one; registration refuses it.
        workdir, artifact = "/", artifact.lstrip("/")
    names = [name for name in artifact.split("/") if name not in ("", ".")]
    if ".." in names or not names:
        return "is not a path inside the job's directory"
    try:
        directory = os.open(workdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return f"cannot be looked for in {workdir}: {error.strerror}"
    except ValueError:
        return f"cannot be looked for in {workdir!a}, which no directory can be called"
    try:
        for name in names[:-1]:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            os.close(directory)
            directory = below
        found = os.stat(names[-1], dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return f"is not there (looked in {workdir})"
    except OSError as error:
        return f"cannot be reached: {error.strerror}"
    except ValueError:
        return "is not a name that a file can have"
    finally:
        os.close(directory)
    if stat.S_ISLNK(found.st_mode):
        return "is a link, not a file"
    return None if stat.S_ISREG(found.st_mode) else "is not a regular file"
