"""The `cxl` command: single programs, without Spark."""
