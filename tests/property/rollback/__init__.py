"""Correlation groups and retraction against a model in plain Python, over generated pipelines."""
