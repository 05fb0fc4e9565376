"""Print the rules of each file of settings, in the order in which mam tries them.

In a pipe: number, do, agent, tool, words and file, separated by tabs.
"""

from __future__ import annotations

import shlex

from mam.cli.render.streams import print_json_array, print_row, say, stdout_is_terminal
from mam.config.project import find_project_file, project_values
from mam.config.settings import config_file, user_values
from mam.jobs.rules import rule_from_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Values
    from mam.jobs.rules import Rule


def add_arguments(parser: Parser) -> None:
    """No arguments of its own."""


def run(options: Options) -> int:
    every = ((rule, file) for file, rules in rules_by_file() for rule in rules)
    found = list(enumerate(every, 1))
    if options.json:
        print_json_array({"number": number, **rule.to_json(), "file": file} for number, (rule, file) in found)
        return 0
    rows = [_row(number, rule, file) for number, (rule, file) in found]
    if not rows:
        say("no rules: mam asks a person about everything that an agent may not do")
    elif stdout_is_terminal():
        from mam.cli.render.table import print_table

        print_table(("RULE", "DO", "AGENT", "TOOL", "COMMAND", "FILE"), rows)
    else:
        for row in rows:
            print_row(*row)
    return 0


def rules_by_file() -> list[tuple[str, list[Rule]]]:
    """Every rule that counts here: those of the project's file and those of the user's."""
    project = find_project_file()
    return [
        ("" if project is None else project.path, _rules_in(project_values())),
        (config_file(), _rules_in(user_values())),
    ]


def _rules_in(values: Values) -> list[Rule]:
    return [rule_from_fields(fields) for fields in values.get("rules", [])]


def _row(number: int, rule: Rule, file: str) -> tuple[str, ...]:
    words = f"{shlex.join(rule.argv)} …" if rule.argv else "any"
    return str(number), rule.do, rule.agent or "any", rule.tool or "any", words, file
