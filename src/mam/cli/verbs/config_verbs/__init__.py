"""The verbs of `mam config`, one file each."""
