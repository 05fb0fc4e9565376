"""Jobs in a live session: submitted as one typed line, watched through hooks, judged like any other."""
