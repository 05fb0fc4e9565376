"""mam hands work to coding agents and knows what became of it."""

__version__ = "0.1.0"
