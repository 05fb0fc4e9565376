"""The subverbs of `mam config`, one file each."""
