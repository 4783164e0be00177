"""Paths in pipeline files: patterns that select files, and templates that name them."""
