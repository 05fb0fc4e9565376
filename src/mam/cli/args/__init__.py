"""Reading the command line: parser, options, help, completion."""
