"""Jobs in a live session: handed over in one typed line, watched by its hooks, judged like any other."""
