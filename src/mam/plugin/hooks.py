"""The hooks of the plugin: they report from sessions that mam did not start.

A session or job that mam started has hooks of its own, so these do nothing there. In a session that has nothing to do
with mam they end before mam starts: what they cost there is one small shell.
"""

from __future__ import annotations

import os
import shlex
import shutil

from mam.agents.adopted import FOLDER
from mam.agents.hook_setup import CLAUDE_EVENTS, CODEX_EVENTS, SECONDS, codex_trust, mam_command
from mam.machine.environment import MARK, SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.plugin.edits import Keys

    Setting = tuple[Keys, Any]

SCRIPT = "hooks/report.sh"
"""In the plugin, for all agents."""

_SCRIPT = """\
# Reports a hook of an agent to mam. It reads its input to the end, prints nothing and exits with 0.
# mam gives hooks of their own to the jobs and sessions that it starts. Elsewhere there is something to report in a job
# that you claimed for this session, and in a pane of tmux that `mam agents adopt` knows.
agent=${{1:-claude-code}}
[ -z "$PLUGIN_ROOT" ] || agent=codex # only Codex sets this, for the hooks of a plugin
server=${{TMUX%,*}}
adopted=${{XDG_STATE_HOME:-$HOME/.local/state}}/mam/{folder}/${{server##*,}}$TMUX_PANE
if [ -z "${socket}${mark}$MAM_SESSION_DIR" ] && {{ [ -n "$MAM_JOB_ID" ] || [ -f "$adopted" ]; }}; then
    {mam} hook "$agent" 2>/dev/null
else
    cat >/dev/null
fi
exit 0
"""


def script() -> str:
    mam = "mam" if shutil.which("mam") else mam_command()
    return _SCRIPT.format(folder=FOLDER, socket=SOCKET, mark=MARK, mam=mam)


def hooks_file() -> dict[str, Any]:
    """The content of `hooks/hooks.json` in the plugin, which Claude Code and Codex read."""
    hook = {"type": "command", "command": f'sh "${{CLAUDE_PLUGIN_ROOT}}/{SCRIPT}"', "timeout": SECONDS}
    return {"hooks": {event: [{"hooks": [hook]}] for event in CLAUDE_EVENTS}}


def codex_hooks(agent: str, root: str, settings: str, held: dict[str, Any]) -> tuple[list[Setting], list[Setting]]:
    """The items and the values for Codex's `settings`, which hold `held` now: a hook for each event, and the trust in
    exactly these. Codex runs no hook without it, and names a hook by its place among those of its event."""
    command = f"sh {shlex.quote(os.path.join(root, SCRIPT))} {agent}"
    group = {"hooks": [{"type": "command", "command": command, "timeout": SECONDS}]}
    items: list[Setting] = []
    trust: list[Setting] = []
    for event in CODEX_EVENTS:
        label, trusted_hash = codex_trust(event, command)
        key = f"{settings}:{label}:{_place(held, event, group)}:0"
        items.append((("hooks", event), group))
        trust.append((("hooks", "state", key), {"trusted_hash": trusted_hash}))
    return items, trust


def _place(held: dict[str, Any], event: str, group: dict[str, Any]) -> int:
    hooks = held.get("hooks")
    groups = hooks.get(event) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        return 0
    return groups.index(group) if group in groups else len(groups)
