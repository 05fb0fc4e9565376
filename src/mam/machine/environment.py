"""The environment of an agent: the worker's environment without mam's secrets, and the variables of its job.

The other variables stay, because agents need their own keys and settings.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mam.jobs.record import Job

_SECRETS = ("MQTT_PASSWORD", "MQTT_USERNAME", "PGPASSWORD")
_SECRET_WORDS = ("TOKEN", "PASSWORD", "PASSPHRASE", "SECRET", "KEY", "CREDENTIALS")
JOB, ATTEMPT, CLAIM, SOCKET = "MAM_JOB_ID", "MAM_ATTEMPT", "MAM_CLAIM", "MAM_SOCKET"
MARK = "MAM_STORE_MARK"
"""An opaque id of the store. By job, attempt and mark a later attempt finds processes that an earlier one left."""
_JOB_VARIABLES = (JOB, ATTEMPT, CLAIM, SOCKET, MARK)


def agent_environment(environ: Mapping[str, str], job: Job, mark: str) -> dict[str, str]:
    """Without MAM_SOCKET, which the worker adds: a worker inside a job must not pass on the door of that job."""
    kept = without_secrets(environ)
    for name in _JOB_VARIABLES:
        kept.pop(name, None)
    return {**kept, **_job_variables(job, mark)}


def script_environment(environ: Mapping[str, str], job: Job, mark: str) -> dict[str, str]:
    """For validation scripts: no variable that the agent or its repository could have influenced."""
    kept = {name: environ[name] for name in ("HOME", "LANG") if name in environ}
    return {**kept, "PATH": absolute_path(environ), **_job_variables(job, mark)}


def _job_variables(job: Job, mark: str) -> dict[str, str]:
    claim = {} if job.claim_id is None else {CLAIM: job.claim_id}
    return {JOB: job.job_id, ATTEMPT: str(job.attempt), **claim, MARK: mark}


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not _is_secret(name, value)}


def absolute_path(environ: Mapping[str, str]) -> str:
    """PATH without relative directories, so that a repository cannot supply its own `git`."""
    places = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(place for place in places if os.path.isabs(place))


def can_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_program(name: str, environ: Mapping[str, str], fit: Callable[[str], bool] = can_run) -> str | None:
    """The path of the program with this name or absolute path; None when there is none that fits."""
    if "/" in name:
        return name if os.path.isabs(name) and fit(name) else None
    for place in absolute_path(environ).split(os.pathsep):
        path = os.path.join(place, name)
        if place and fit(path):
            return path
    return None


def shell_knows(word: str) -> bool:
    """Whether a shell can run a command that begins with this word: a program, a builtin or a keyword."""
    if find_program(word, os.environ) is not None:
        return True
    import subprocess

    asked = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", word]
    return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _is_secret(name: str, value: str) -> bool:
    if name in _SECRETS:
        return True
    if not name.startswith("MAM_"):
        return False
    return name.rpartition("_")[2] in _SECRET_WORDS or (name == "MAM_STORE" and has_password(value))


def names_a_secret(name: str) -> bool:
    """Whether the value of a variable with this name should be hidden."""
    return name.upper().rpartition("_")[2] in _SECRET_WORDS


def without_password(address: str) -> str:
    """Removes the password and the parameters. If the password is not escaped correctly, its end is unknown, and only
    the scheme remains."""
    scheme, colon, rest = address.partition("://")
    if not colon or scheme == "sqlite":
        return address
    login, at, place = rest.partition("?")[0].rpartition("@")
    if "@" in rest.partition("?")[2] or any(letter in login for letter in "/@"):
        return f"{scheme}://…"
    return f"{scheme}://{login.partition(':')[0]}{at}{place}"


def has_password(address: str) -> bool:
    """`user:password@host`, or `password=` in the parameters in any spelling; in doubt, true."""
    scheme, colon, rest = address.partition("://")
    if not colon or scheme == "sqlite":
        return False
    login, at, _ = rest.rpartition("@")
    return bool(at and ":" in login) or "password" in _unquoted(rest).lower()


def _unquoted(text: str) -> str:
    """PostgreSQL also accepts `p%61ssword=`."""
    from urllib.parse import unquote

    return unquote(text)
