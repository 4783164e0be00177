"""Readers, one module per file format: files become typed columns in file order, bad records become errors."""
