"""Functions that the subverbs of `mam config` share."""

from __future__ import annotations

import os

from mam.config.project import NAME, find_project_file
from mam.config.settings import KINDS, config_file, value_from_text
from mam.errors import BadInput, Refused
from mam.machine.environment import has_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.config.keys import Key


def add_project(parser: Parser) -> None:
    parser.add_argument("--project", action="store_true", help=f"use the project's {NAME} instead of your own file")


def chosen_file(options: Options) -> str:
    if not options.project:
        return config_file()
    found = find_project_file()
    return found.path if found is not None else os.path.join(os.getcwd(), NAME)


def refuse_inside_a_job() -> None:
    from mam.machine.agent_tree import is_inside_agent

    if is_inside_agent():
        raise Refused(why="a job cannot change settings; only a person can")


def parsed_value(key: Key, text: str) -> Any:
    """The value for the file. Secrets are rejected, because other users can read a command line."""
    if key.path == ("store",) and has_password(text):
        raise Refused(why="a file of settings must not contain the password of a store; use PGPASSWORD or ~/.pgpass")
    if key.holds_secret:
        raise Refused(
            why=f"{key.path[-1]} looks like a secret; export it in the environment of the worker for its agents"
        )
    if key.setting.kind not in (dict, list):
        return value_from_text(key.setting, text, key.name)
    from mam.config.file import read_toml

    try:
        value = read_toml(f"value = {text}")["value"]
    except ValueError:
        value = None
    if not isinstance(value, key.setting.kind):
        example = "{input = 1.25, output = 10}" if key.path[0] == "prices" else '{NAME = "text"}'
        example = '["my-agent", "{brief}"]' if key.setting.kind is list else example
        raise BadInput(why=f"{key.name} must be {KINDS[key.setting.kind]}, written as in the file: '{example}'")
    return value
