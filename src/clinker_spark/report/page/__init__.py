"""A run as one page for a browser, with everything in it: no other file, no network."""
