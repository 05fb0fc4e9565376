"""How what an agent needs from a person becomes a question of its job, and the answer reaches the agent."""
