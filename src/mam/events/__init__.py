"""The event: what is told about a job. Pure."""
