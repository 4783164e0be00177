"""Reading JSON files."""
