"""For authors of stores: a clock that obeys, a pool that races, and the suite that judges a store."""
