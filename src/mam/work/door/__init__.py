"""The door: the socket that a worker gives its agent, for one job."""
