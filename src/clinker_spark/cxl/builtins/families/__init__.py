"""The rows of the builtin table, one file for each family."""
