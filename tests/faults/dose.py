"""How much of a fault is tried: once with every change, more by `make faults`, and for hours by `make faults-long`."""

from __future__ import annotations

import os

DOSE = int(os.environ.get("MAM_FAULTS", "1"))
