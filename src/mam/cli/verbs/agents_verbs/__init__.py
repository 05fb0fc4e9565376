"""The subverbs of `mam agents`, one file each."""
