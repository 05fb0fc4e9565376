"""Where a store's jobs have their private directories on this host.

Outside of every project: what searches upward for its settings (git above all) would otherwise find the user's own
repository around a job's fresh directory, and work there.
"""

from __future__ import annotations

import hashlib
import os

from mam.state import state_directory


def work_directory(store_address: str) -> str:
    """One for each store; the address is the one without a password."""
    name = hashlib.sha256(store_address.encode(errors="surrogateescape")).hexdigest()[:16]
    return os.path.join(state_directory(), "work", name)
