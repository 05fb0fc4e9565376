"""Check that the settings are valid and that other users cannot change them."""

from __future__ import annotations

import os
import stat

from mam.config.project import find_project_file
from mam.config.settings import config_file
from mam.config.trust import is_trusted
from mam.doctor.finding import fine, note, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    if context.bad_settings is not None:
        yield wrong(str(context.bad_settings), "no verb runs with invalid settings", "mam config edit")
        return
    file = config_file()
    if not os.path.exists(file):
        yield fine("no file of settings; mam uses the defaults and the environment")
        return
    about = os.stat(file)
    if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield wrong(
            f"other users can write {file}",
            "it contains commands that your workers run",
            f"chmod go-w {file}",
            lambda: os.chmod(file, stat.S_IMODE(about.st_mode) & ~0o022),
        )
    project = find_project_file()
    if project is not None and not is_trusted(project.path, project.digest):
        yield note(f"{project.path} is not trusted", "mam uses only its harmless settings", "mam trust")
    yield fine(f"{file} is valid")
