"""The command line: options -> analysis -> output."""
