"""Reading fixed-width files."""
