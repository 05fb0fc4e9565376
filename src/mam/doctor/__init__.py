"""Checks of the store, the settings and the machine; one file each."""
