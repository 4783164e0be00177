"""Plan nodes as DataFrames, one module per node type."""
