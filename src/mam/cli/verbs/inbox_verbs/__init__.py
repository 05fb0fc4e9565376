"""The verbs of `mam inbox`."""
