"""Names and types: from a syntax tree to a typed program."""
