"""The page: server-rendered HTML for people."""
