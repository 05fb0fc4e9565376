"""The processes of `tools.bench.rounds`: `python -m tools.bench.workers.<who> <address>`."""
