"""`mam demo`: real workers and jobs in a sandbox, and a check of every promise."""
