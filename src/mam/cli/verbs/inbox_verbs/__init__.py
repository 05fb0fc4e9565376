"""The subverbs of `mam inbox`."""
