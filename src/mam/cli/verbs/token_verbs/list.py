"""Print every token: name, scopes, bounds and expiry, separated by tabs in a pipe. A token itself cannot be shown."""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json_array, print_row, say, stdout_is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.credential import Credential
    from mam.jobs.record import Json

HEADINGS = ("NAME", "SCOPES", "BOUNDS", "EXPIRES")


def add_arguments(_parser: Parser) -> None:
    pass


def run(options: Options) -> int:
    from mam.access.credentials import token_json, tokens

    found = tokens(registry_of(options).store)
    if options.json:
        print_json_array(token_json(token) for token in found)
    elif not stdout_is_terminal():
        for token in found:
            print_row(*_columns(token))
    elif found:
        from mam.cli.render.table import print_table

        print_table(HEADINGS, [_columns(token) for token in found])
    else:
        say("no tokens; `mam token create NAME --scope read` creates one")
    return 0


def _columns(token: Credential) -> tuple[str, ...]:
    from mam.access.credentials import token_json

    fields = token_json(token)
    return fields["name"], ",".join(fields["scopes"]), _bounds(fields), fields["expires_at"] or "-"


def _bounds(fields: Json) -> str:
    named = [f"{what}={','.join(fields[f'{what}s'])}" for what in ("label", "agent", "repo") if fields[f"{what}s"]]
    return " ".join([*named, f"max_permissions={fields['max_permissions']}"])
