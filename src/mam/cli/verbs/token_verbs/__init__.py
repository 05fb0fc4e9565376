"""The subverbs of `mam token`."""
