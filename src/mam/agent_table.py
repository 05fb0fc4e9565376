"""The table of agents that mam knows. Everything that lists agents is derived from it.

To add an agent, write its adapter (`mam/work/adapters/`), its report reader (`mam/work/reports/`), its conversation
reader (`mam/conversation/`) and one row here. `tests/work/test_agent_table.py` reports what is still missing.

The table names modules by string: most commands need the names of the agents, and none of their code.
"""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class AgentKind(Frozen):
    name: str
    adapter: str
    """The module whose `adapter()` returns the Adapter."""
    program: str = ""
    """The executable; empty for agents that are no coding agents."""
    package: str = ""
    """The npm package that installs the program."""
    tested: str = ""
    """The newest version that mam was tested with."""
    reader: str = ""
    """`module:class` of the report reader, which parses the agent's output."""
    conversation: str = ""
    """`module:class` of the conversation reader, which shows the agent's output to people."""
    login: str = ""
    """What a user who is not logged in has to do."""
    hooks: str = ""
    """`module:function` that adds mam's hooks to the command line of a live session; see `mam.agents.hook_setup`."""
    reaches_mam_in_sandbox: bool = True
    """Whether the agent's commands can run mam when its permissions are not `full`. The brief depends on it."""
    config_directory: str = ""
    """Where the agent keeps its files, below the user's home directory."""
    config_variable: str = ""
    """The environment variable that names another one."""
    transcripts: str = ""
    """Glob pattern of its transcripts, below its directory."""
    usage: str = ""
    """`module:function` that finds in a transcript what a turn of a live session took; empty if its hooks report it."""
    repeatable: tuple[str, ...] = ()
    """Options that mam passes and that the user may pass once more."""
    skills: str = ""
    """The directory, in a project or in the user's home, whose `skills` it reads; empty if another row names it."""
    escape_presses: int = 1
    """How often Escape must be pressed to interrupt a live session."""
    waits_for_limit: bool = False
    """Whether a live session waits for the end of a usage limit and then continues its turn."""

    @property
    def is_coding_agent(self) -> bool:
        return bool(self.program)

    def home(self) -> str:
        """The agent's own directory of this user."""
        import os

        chosen = os.environ.get(self.config_variable) if self.config_variable else None
        return chosen or os.path.join(os.path.expanduser("~"), self.config_directory)


_ROWS = (
    AgentKind(
        name="claude-code",
        adapter="mam.work.adapters.claude_code",
        program="claude",
        package="@anthropic-ai/claude-code",
        tested="2.1.325",
        reader="mam.work.reports.claude_code:ClaudeCodeReader",
        conversation="mam.conversation.claude_code:ClaudeCodeConversation",
        login="run `claude` once and use /login, or set ANTHROPIC_API_KEY",
        hooks="mam.agents.hook_setup:add_claude_hooks",
        config_directory=".claude",
        config_variable="CLAUDE_CONFIG_DIR",
        transcripts="projects/*/*.jsonl",
        usage="mam.work.reports.claude_code:turn_usage",
        skills=".claude",
        waits_for_limit=True,
    ),
    AgentKind(
        name="codex",
        adapter="mam.work.adapters.codex",
        program="codex",
        package="@openai/codex",
        tested="0.166.0",
        reader="mam.work.reports.codex:CodexReader",
        conversation="mam.conversation.codex:CodexConversation",
        login="run `codex login`, or set the key that your provider needs",
        hooks="mam.agents.hook_setup:add_codex_hooks",
        reaches_mam_in_sandbox=False,
        repeatable=("--config",),
        config_directory=".codex",
        config_variable="CODEX_HOME",
        transcripts="sessions/**/rollout-*.jsonl",
        usage="mam.work.reports.codex:turn_usage",
        skills=".agents",
    ),
    AgentKind(
        name="opencode",
        adapter="mam.work.adapters.opencode",
        program="opencode",
        package="opencode-ai",
        tested="1.18.33",
        reader="mam.work.reports.opencode:OpenCodeReader",
        conversation="mam.conversation.opencode:OpenCodeConversation",
        login="run `opencode auth login`",
        hooks="mam.agents.hook_setup:add_opencode_hooks",
        escape_presses=2,
        waits_for_limit=True,
    ),
    AgentKind(name="shell", adapter="mam.work.adapters.shell"),
    AgentKind(name="human", adapter="mam.work.adapters.human"),
)

AGENTS = {row.name: row for row in _ROWS}
CODING_AGENTS = {name: row for name, row in AGENTS.items() if row.is_coding_agent}
UNKNOWN = AgentKind(name="", adapter="")
"""What mam assumes of an agent that has no row."""


def agent_kind(name: str) -> AgentKind:
    return AGENTS.get(name, UNKNOWN)


def load(target: str) -> Callable[..., Any]:
    """The class or function that a `module:name` in the table names."""
    from importlib import import_module

    module, _, name = target.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
