"""paho's client, without the modules that only its proxy support needs.

paho imports `urllib.request` to find a proxy if PySocks is installed. That import also loads HTTP and mail, a fifth of
the time of a command that sends one event. A lazy module delays it until first use.
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
        """Replace this stand-in by the real module and return its attribute."""
        from importlib import import_module

        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(import_module(_NAME), name)


if _NAME not in sys.modules:
    urllib.request = sys.modules[_NAME] = _LazyModule(_NAME)

from paho.mqtt.client import Client, MQTTMessage  # noqa: E402 - not before its place is taken

__all__ = ["Client", "MQTTMessage"]
