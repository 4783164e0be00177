"""Streams on Spark: readers that know how far they are, watermarks, state."""
