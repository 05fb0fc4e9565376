"""The routes of prompt-valet, so that its clients can use mam: its names, answers and codes at a second address."""
