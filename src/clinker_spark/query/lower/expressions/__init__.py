"""Lowering what stands inside of clauses: expressions over the columns of a row."""
