"""The files of sources: found, put in order, and watched for changes while they are read."""
