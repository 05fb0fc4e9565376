"""The stores that this user has opened, for `--everywhere`."""

from __future__ import annotations

import os

from mam.cli.args.job_selection import check_label
from mam.cli.render.streams import say
from mam.config.settings import load_config
from mam.errors import BadInput, MamError, StoreMissing
from mam.location.stores import FILES, locate, open_located
from mam.util.frozen import Frozen
from mam.util.state_dir import known_stores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.cli.args.parser import Options
    from mam.registry import Registry

LOCK_SECONDS = 2.0
"""A store whose lock is held must not delay the others for long."""


class StoreRef(Frozen):
    """One store of the list: its registry, or the problem that prevents opening it."""

    address: str
    registry: Registry | None
    problem: str | None = None

    @property
    def display_name(self) -> str:
        return abbreviate_home(self.address)


def abbreviate_home(address: str) -> str:
    home = os.path.expanduser("~")
    return f"~{address[len(home) :]}" if home != "/" and address.startswith(f"{home}/") else address


def open_known_stores(options: Options) -> Iterator[StoreRef]:
    if options.store is not None or options.registry_dir is not None:
        raise BadInput(why="--everywhere selects every store; omit --store")
    check_label(options)
    config = load_config()
    config = config.replace(lock_wait_seconds=min(config.lock_wait_seconds, LOCK_SECONDS))
    addresses = known_stores()
    if not addresses:
        say("you have not opened a store yet; `mam init` or the first `mam register` creates one")
    for address in addresses:
        try:
            located = locate(address, None, config)
            if located.kind == FILES and not located.exists:
                raise StoreMissing(store=address)
            yield StoreRef(address=address, registry=open_located(located, config))
        except StoreMissing:
            problem = "missing; `mam doctor --fix` removes it from the list"
            yield StoreRef(address=address, registry=None, problem=problem)
        except MamError as error:
            yield StoreRef(address=address, registry=None, problem=without_address(address, error))


def without_address(address: str, error: MamError) -> str:
    """The message without the store's address, which the caller prints before it."""
    return str(error).removeprefix(f"{address}: ")
