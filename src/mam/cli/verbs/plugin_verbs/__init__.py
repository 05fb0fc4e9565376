"""The subverbs of `mam plugin`, one file each."""
