"""Datasets as sources of pipelines."""
