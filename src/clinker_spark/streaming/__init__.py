"""Pipelines over records that never end: `clinker stream`."""
