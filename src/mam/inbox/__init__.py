"""Inbox directories: each dropped file becomes exactly one job, and mam writes the outcome beside it."""
