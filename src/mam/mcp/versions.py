"""The versions of the protocol, and what a request says about its client. Pure.

Until 2025-11-25 a client introduces itself once with `initialize`. Since 2026-07-28 every request does so in its
`_meta`, and the server keeps nothing between requests. mam serves both.
"""

from __future__ import annotations

from mam.mcp.messages import INVALID_PARAMS, MISSING_CAPABILITY, UNSUPPORTED_VERSION, RpcError
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json

WITH_HANDSHAKE = ("2025-11-25", "2025-06-18")
"""The newest first."""

OLDEST = WITH_HANDSHAKE[-1]
STATELESS = ("2026-07-28",)
META = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY = f"{META}protocolVersion", f"{META}clientCapabilities"
TASKS = f"{META}tasks"
"""The extension in which a job is a task."""

NAME_LIMIT = 64


class Client(Frozen):
    """Who sent a request, by its own words: nothing here gives a right."""

    version: str
    name: str = ""
    capabilities: Json

    @property
    def is_stateless(self) -> bool:
        return self.version in STATELESS

    @property
    def takes_tasks(self) -> bool:
        extensions = self.capabilities.get("extensions")
        return self.is_stateless and isinstance(extensions, dict) and isinstance(extensions.get(TASKS), dict)

    @property
    def takes_forms(self) -> bool:
        """Whether its user can fill in a form. An empty declaration means forms."""
        found = self.capabilities.get("elicitation")
        return isinstance(found, dict) and (not found or "form" in found)


def client_of(params: Json, known: Client | None) -> Client:
    """The client of a request; `known` introduced itself with `initialize` before."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        if known is None:
            raise RpcError(INVALID_PARAMS, f"_meta has no {VERSION_KEY}, and there was no initialize")
        return known
    version, capabilities = meta[VERSION_KEY], meta.get(CAPABILITIES_KEY)
    if version not in STATELESS:
        data = {"supported": [*STATELESS, *WITH_HANDSHAKE], "requested": str(version)[:NAME_LIMIT]}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta has no {CAPABILITIES_KEY}")
    return Client(version=version, name=_name(meta.get(f"{META}clientInfo")), capabilities=capabilities)


def client_of_handshake(params: Json) -> Client:
    """The client of `initialize`. It gets the version that it wants, or else the newest one with a handshake."""
    wanted, capabilities = params.get("protocolVersion"), params.get("capabilities", {})
    if not isinstance(wanted, str) or not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, "initialize needs a protocolVersion and capabilities")
    version = wanted if wanted in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
    return Client(version=version, name=_name(params.get("clientInfo")), capabilities=capabilities)


def missing_tasks() -> RpcError:
    needed: Json = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return RpcError(MISSING_CAPABILITY, "Missing required client capability", needed)


def _name(info: object) -> str:
    """For the audit log: printable and short."""
    name = info.get("name") if isinstance(info, dict) else None
    if not isinstance(name, str):
        return ""
    return "".join(letter for letter in name if letter.isprintable())[:NAME_LIMIT].strip()
