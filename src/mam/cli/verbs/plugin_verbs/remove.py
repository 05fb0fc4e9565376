"""Undo what `mam plugin install` wrote, and nothing else.

A file that only mam changed gets its earlier content back. In settings that you have changed since, mam removes its own
keys. mam leaves and names a file of its own that you have changed.

  mam plugin remove
  mam plugin remove --agent codex --project
"""

from __future__ import annotations

from mam.cli.render.streams import print_json, say
from mam.cli.verbs.plugin_verbs.common import add_plugin_options, chosen_agents, may_write, project_of, show
from mam.plugin.agents import AGENTS
from mam.plugin.installation import Change, find, plan_removal, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.plugin.installation import Installed


def add_arguments(parser: Parser) -> None:
    add_plugin_options(parser)


def run(options: Options) -> int:
    project = project_of(options)
    agents = chosen_agents(options, list(AGENTS))
    found = [one for agent in agents if (one := find(agent, project)) is not None]
    if not found:
        say(f"the plugin is not installed for {', '.join(agents)}{' in this project' if project else ''}")
        return 0
    removed, changes, left = list[str](), list[Change](), list[str]()
    for installed in found:
        done, stays = _remove(installed, options, changes)
        removed += [installed.agent] if done else []
        left += stays
    for path in left:
        say(f"{path} was changed since, so it stays")
    if options.json:
        files = [{"path": change.path, "before": change.before, "after": change.after} for change in changes]
        print_json({"agents": removed, "files": files, "left": left})
    elif removed:
        say(f"removed for {', '.join(removed)}")
    return 0 if removed or options.dry_run else 1


def _remove(installed: Installed, options: Options, shown: list[Change]) -> tuple[bool, list[str]]:
    changes, left = plan_removal(installed)
    shown += changes
    if not options.json:
        show(changes)
    if options.dry_run or (changes and not may_write(options, changes)):
        return False, left
    remove(installed, changes)
    return True, left
