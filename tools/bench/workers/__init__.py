"""The processes of `tools.bench.turns`: `python -m tools.bench.workers.<who> <address>`."""
