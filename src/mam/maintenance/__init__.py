"""Jobs on the move: into the archive when they are old, and from one registry to another."""
