"""The command line: arguments -> job -> output, one file per verb."""
