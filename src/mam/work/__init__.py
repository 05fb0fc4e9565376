"""The worker: it claims, runs an agent, watches, checks and finishes."""
