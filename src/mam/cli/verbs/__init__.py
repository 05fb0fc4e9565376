"""One verb, one file. A verb parses, calls the registry and prints; it holds no rules."""
