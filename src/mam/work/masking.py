"""Hides known secrets in what leaves the host: the values of the worker's environment whose names say that they are
secret (`…_TOKEN`, `…_KEY`, `…_PASSWORD`), and the password in MAM_STORE. Other secrets that an agent prints are not
known, and not hidden.

A secret becomes asterisks of the same number, so that offsets stay those of the original.
"""

from __future__ import annotations

import json
import os
import re

from mam.machine.environment import names_a_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHORTEST = 8
"""Shorter values are words that occur by chance."""


def known_secrets(environ: Mapping[str, str]) -> list[str]:
    named = [value for name, value in environ.items() if names_a_secret(name)]
    return [value for value in [*named, _password(environ.get("MAM_STORE", ""))] if len(value) >= SHORTEST]


def _password(address: str) -> str:
    """Of a store's address."""
    login = address.partition("://")[2].rpartition("@")[0]
    return login.partition(":")[2]


class Mask:
    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        self._secrets = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None
        self.longest = len(self._secrets[0]) if self._secrets else 0

    def apply(self, data: bytes) -> bytes:
        return data if self._pattern is None else self._pattern.sub(lambda found: b"*" * len(found[0]), data)

    def finds(self, data: bytes) -> bool:
        return self._pattern is not None and self._pattern.search(data) is not None

    def safe_length(self, masked: bytes) -> int:
        """How much of masked data can be sent before more has come: its end may be the beginning of a secret."""
        for start in range(max(0, len(masked) - self.longest + 1), len(masked)):
            if any(secret.startswith(masked[start:]) for secret in self._secrets):
                return start
        return len(masked)


def _spellings(secret: str) -> set[bytes]:
    """As it is, and as a string of JSON, which coding agents print."""
    in_json = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    return {os.fsencode(spelling) for spelling in (secret, *in_json)}
