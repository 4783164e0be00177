"""Names and types of query programs, before anything runs."""
