"""Make a store; prints its address.

The store is made where `mam where` says, so a store further up is found instead of making a second one.
"""

from __future__ import annotations

import os

from mam.cli.render.streams import print_json, print_row, print_text, say
from mam.config.settings import load_config
from mam.location.stores import create_store, locate, open_located, store_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.location.stores import StoreLocation


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--sql", action="store_true", help="print the schema of a database instead of making it")


def run(options: Options) -> int:
    config = load_config()
    found = locate(options.store, options.registry_dir, config)
    if options.sql:
        return _printed(found, as_json=options.json)
    made = create_store(found, config)
    store = open_located(found, config).store
    if made:
        is_new = next(iter(store.entries(None)), None) is None
        say(f"made a store at {found.shown}" if is_new else f"{found.shown} is brought up to date")
    else:
        elsewhere = found.shown != os.path.join(os.getcwd(), ".mam/jobs") and options.store is None
        hint = "; `mam init --store .mam/jobs` makes one in this directory" if elsewhere else ""
        say(f"there is a store already, {found.why}{hint}")
    if options.json:
        print_json({"store": found.shown, "made": made})
    else:
        print_row(found.shown)
    return 0


def _printed(found: StoreLocation, *, as_json: bool) -> int:
    schema = store_schema(found)
    if as_json:
        print_json({"store": found.shown, "sql": schema})
    else:
        print_text(schema)
    return 0
