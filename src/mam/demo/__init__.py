"""The demonstration: real workers and real jobs in a world of its own, and a check of every promise it makes."""
