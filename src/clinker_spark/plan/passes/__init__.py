"""What is known about a plan before it runs: one file for each pass, all of them listed in `all`."""
