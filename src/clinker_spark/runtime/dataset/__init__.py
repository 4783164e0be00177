"""Datasets that change: importing events, compacting chunks, and checking that everything is as it was written."""
