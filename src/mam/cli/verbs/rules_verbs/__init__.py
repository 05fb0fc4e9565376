"""The subverbs of `mam rules`, one file each."""
