"""Reading XML files."""
