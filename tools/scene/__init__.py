"""A store as it looks in the middle of a working day, for pictures and tests of the page."""
