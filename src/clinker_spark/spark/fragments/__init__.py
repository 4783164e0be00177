"""Fragments: from the batches of a reader to finished lines, in the worker that reads the split."""
