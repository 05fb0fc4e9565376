"""`make bench`: how long mam takes, always as a ratio to something else that is measured in the same run.

Both sides take turns, so that whatever else the machine does meets both. The table goes into docs/performance.md.
"""
