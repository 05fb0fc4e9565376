"""Where the store is, whether it belongs to the user, and what git tracks of it."""

HOMES = (".mam", ".hermes")
"""Directories that contain a store: mam keeps them out of git, and other users must not be able to write there."""
