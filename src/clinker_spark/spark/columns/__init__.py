"""Programs over DataFrames: lowered steps, calls that run in Python, types and values on both sides."""
