"""Small modules without rules of their own: records, time, JSON, files."""
