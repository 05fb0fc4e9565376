"""For authors of stores: a clock that obeys, a crew that races, and the suite that judges a store."""
