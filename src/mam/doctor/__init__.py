"""Looking after a store and the machine under it: one check, one file."""
