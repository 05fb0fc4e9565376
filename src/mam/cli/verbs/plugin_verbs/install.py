"""Tell agents of mam: show the change of every file, ask, and write it.

For the user (the default) or with --project for the repository of this directory. Claude Code gets a plugin; Codex,
OpenCode and Gemini CLI get the MCP server in their settings and the skill. For the user, Claude Code and Codex also get
hooks, which report from claimed jobs and adopted sessions. mam notes what each file contained before.

  mam plugin install --dry-run
  mam plugin install --agent claude-code --agent codex
"""

from __future__ import annotations

from mam.cli.render.streams import print_json, say
from mam.cli.verbs.plugin_verbs.common import add_plugin_options, chosen_agents, may_write, project_of, show
from mam.errors import BadInput
from mam.plugin.agents import AGENTS, present_agents, wanted_files
from mam.plugin.installation import Change, install, plan_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_plugin_options(parser)


def run(options: Options) -> int:
    project = project_of(options)
    agents = chosen_agents(options, present_agents())
    if not agents:
        raise BadInput(why=f"none of {', '.join(AGENTS)} is installed; name one with --agent")
    plans = {agent: wanted_files(agent, project) for agent in agents}
    changes = _changes([plan_install(wanted) for wanted in plans.values()])
    if not options.json:
        show(changes)
    written = may_write(options, changes)
    if written:
        for agent, wanted in plans.items():
            install(agent, project, wanted, plan_install(wanted))
    if options.json:
        files = [{"path": change.path, "before": change.before, "after": change.after} for change in changes]
        print_json({"agents": agents, "files": files, "written": written})
    elif not changes:
        say(f"the plugin is up to date for {', '.join(agents)}")
    elif written:
        say(f"installed for {', '.join(agents)}; new sessions have it. `mam plugin remove` undoes that")
    return 0 if written or options.dry_run or not changes else 1


def _changes(plans: list[list[Change]]) -> list[Change]:
    """Each file once: agents share the skill."""
    return list({change.path: change for plan in plans for change in plan}.values())
