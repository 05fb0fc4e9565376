"""Create a store; print its address.

mam creates the store that `mam where` prints. If a parent directory has a store, mam uses that one and creates none.
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
    parser.add_argument("--sql", action="store_true", help="print the database schema and create nothing")


def run(options: Options) -> int:
    config = load_config()
    found = locate(options.store, options.registry_dir, config)
    if options.sql:
        return _printed(found, as_json=options.json)
    made = create_store(found, config)
    store = open_located(found, config).store
    if made:
        is_new = next(iter(store.entries(None)), None) is None
        say(f"created a store at {found.shown}" if is_new else f"upgraded {found.shown}")
    else:
        elsewhere = found.shown != os.path.join(os.getcwd(), ".mam/jobs") and options.store is None
        hint = "; `mam init --store .mam/jobs` creates one in this directory" if elsewhere else ""
        say(f"the store exists already: {found.why}{hint}")
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
