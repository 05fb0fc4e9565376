"""Report readers: parse the output of coding agents, one module per output format. Pure."""
