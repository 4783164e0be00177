"""Reading delimited text."""
