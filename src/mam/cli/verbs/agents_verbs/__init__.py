"""The verbs of `mam agents`, one file each."""
