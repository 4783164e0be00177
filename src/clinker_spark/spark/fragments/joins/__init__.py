"""Broadcast combines inside of fragments: each worker looks up its records in a table that all of them share."""
