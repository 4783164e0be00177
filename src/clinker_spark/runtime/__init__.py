"""Running a plan: files are found, stages run, outputs appear all at once or not at all."""
