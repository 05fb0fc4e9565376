"""The conversation view: what coding agents print, as a few kinds of items. Pure; one module per output format."""
