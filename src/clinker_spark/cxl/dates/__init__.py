"""Date formats in the style of strftime, in Python and as Spark SQL."""
