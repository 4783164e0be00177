"""Correlation groups and retraction: what belongs to a failed record is withheld, totals are made without it."""
