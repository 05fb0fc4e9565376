"""Dropped files: each becomes exactly one job, and its outcome is found beside it."""
