"""How many faults are tried: few in `make test`, more in `make faults`, for hours in `make faults-long`."""

from __future__ import annotations

import os

DOSE = int(os.environ.get("MAM_FAULTS", "1"))
