"""The live view of `mam watch`."""
