"""The command line: one module per command, all loaded only when called."""
