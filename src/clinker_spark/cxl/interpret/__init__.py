"""The interpreter: typed programs over records in pure Python."""
