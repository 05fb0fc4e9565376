"""Output: tables, text, progress, errors."""
