"""The verbs of `mam skill`, one file each."""
