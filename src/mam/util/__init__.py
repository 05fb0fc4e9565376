"""Helpers without rules about jobs: frozen records, time, JSON, files."""
