"""mam hands work to coding agents and tracks the outcome of every job."""

__version__ = "0.1.0"
