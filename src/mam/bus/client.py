"""paho's client, without what only its proxies need.

paho imports `urllib.request` to ask it for a proxy, if PySocks is there to use one. With it come HTTP and mail, which
is a fifth of a command that sends one event. It is loaded when it is asked.
"""

from __future__ import annotations

import sys
import urllib
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAME = "urllib.request"


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        """Whoever wants something of it gets it from the module itself, which then is in its place."""
        from importlib import import_module

        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(import_module(_NAME), name)


if _NAME not in sys.modules:
    urllib.request = sys.modules[_NAME] = _LazyModule(_NAME)

from paho.mqtt.client import Client, MQTTMessage  # noqa: E402 - not before its place is taken

__all__ = ["Client", "MQTTMessage"]
