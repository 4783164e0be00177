"""What pydantic and the models found, as diagnostics at their places in the file."""
