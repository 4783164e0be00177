"""Query programs over plain values, in pure Python."""
