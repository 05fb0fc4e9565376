"""Check what `mam plugin install` wrote: another program may have changed it, or mam has another version of it."""

from __future__ import annotations

from mam.doctor.finding import fine, first_few, note
from mam.plugin.agents import AGENTS, wanted_files
from mam.plugin.installation import drifted, installations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding
    from mam.plugin.installation import Installed


def check(_context: Context) -> Iterator[Finding]:
    whole = []
    for installed in installations():
        again = _again(installed)
        lost = drifted(installed)
        if lost:
            yield note(f"the plugin for {installed.agent} is not as mam wrote it: {first_few(lost)}",
                       "the agent may not know mam's tools", again)  # fmt: skip
        elif _is_outdated(installed):
            yield note(f"the plugin for {installed.agent} is of another version of mam",
                       "the agent gets an older skill or older hooks", again)  # fmt: skip
        else:
            whole.append(installed.agent)
    if whole:
        yield fine(f"the plugin is in place for {', '.join(dict.fromkeys(whole))}")


def _is_outdated(installed: Installed) -> bool:
    if installed.agent not in AGENTS:
        return False
    wanted = {one.path: one.text for one in wanted_files(installed.agent, installed.project)}
    return wanted != {one.path: one.text for one, _ in installed.files}


def _again(installed: Installed) -> str:
    where = "" if installed.project is None else " --project"
    return f"mam plugin install --agent {installed.agent}{where}"
