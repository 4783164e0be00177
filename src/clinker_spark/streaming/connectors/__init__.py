"""Sources and outputs of streams that are no files."""
