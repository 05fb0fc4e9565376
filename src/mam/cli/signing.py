"""Whether the events of a new job are signed, and with what."""

from __future__ import annotations

from mam.cli.output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.parser import Options, Parser
    from mam.registry import Registry

TOKEN_BYTES = 32


def add_sign(parser: Parser) -> None:
    parser.add_argument(
        "--sign", action="store_true", help="sign its events with a token of its own; so is done for a broker elsewhere"
    )


def signing(options: Options, registry: Registry) -> dict[str, str]:
    """The id for a job whose token is kept already, as words for `register`; nothing if it is not to be signed.

    The token comes first: a job that shall be signed is never there without one.
    """
    if not (options.sign or _broker_is_elsewhere()):
        return {}
    if _is_door(registry):
        if options.sign:
            say("--sign is not taken inside a job: the worker that registers it has no token to give")
        return {}
    from secrets import token_urlsafe

    job_id = registry.store.clock.new_id()
    registry.store.keep_secrets(job_id, {"auth_token": token_urlsafe(TOKEN_BYTES)})
    return {"job_id": job_id}


def _broker_is_elsewhere() -> bool:
    import os

    from mam.config import load_config

    host = os.environ.get("MQTT_BROKER") or load_config().broker.get("host")
    if not host:
        return False
    from mam.bus.settings import host_and_port, is_loopback

    return not is_loopback(host_and_port(host)[0])


def _is_door(registry: Registry) -> bool:
    import os

    if not os.environ.get("MAM_SOCKET"):
        return False
    from mam.door import DoorRegistry

    return isinstance(registry, DoorRegistry)
