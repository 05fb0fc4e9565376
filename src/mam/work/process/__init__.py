"""Running an agent: keeper and guardian processes, pipes, process trees."""
