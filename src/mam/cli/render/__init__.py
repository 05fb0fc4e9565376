"""Printing for people: tables, text, progress."""
