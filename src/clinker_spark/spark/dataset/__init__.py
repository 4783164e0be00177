"""Datasets as DataFrames."""
