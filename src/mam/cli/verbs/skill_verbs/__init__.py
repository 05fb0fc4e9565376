"""The subverbs of `mam skill`, one file each."""
