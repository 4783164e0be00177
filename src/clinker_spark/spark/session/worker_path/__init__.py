"""A place of modules for the Python processes that Spark starts: what it has, they do first."""
