"""The `clinker` command: pipelines and queries."""
