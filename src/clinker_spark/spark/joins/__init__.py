"""The ways to join two sides: by ranges, as of a time, and what all of them share."""
