"""Drivers: processes in an agent's tree that speak the agent's protocol, so that it can ask a person while it works."""
