"""Jobs as readable files on one host, mirrored from an SQLite database."""
