"""The command line: one verb, one file. Doors parse, call the registry and print; they hold no rules."""
