"""Queries on Spark: sources as views, lowered text as DataFrames, rows as plain values."""
