"""Makes conversation items of what coding agents print. Pure; one module for each agent."""
