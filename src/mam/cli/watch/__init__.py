"""The screen of `mam watch`."""
