"""For authors of stores: a fake clock, a pool of racing processes, and the conformance suite."""
