"""Node types of a plan: one file for each, a class with its traits."""
