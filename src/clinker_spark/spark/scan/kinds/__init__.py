"""Reading text files with several kinds of records."""
